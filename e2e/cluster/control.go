package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
)

// control is a socket in the state directory. A line "stop" ends the cluster; the
// connection stays open until it has ended, so that its end can be waited for. A line "upgrade"
// with what is to run, and a line "restart-providers", are answered by a line when that is done.
type control struct {
	listener net.Listener
	requests chan request
	mutex    sync.Mutex
	callers  []net.Conn
}

// request is what somebody has asked of the cluster.
type request struct {
	do func(context.Context, *cluster) error
	// caller gets the result in one line.
	caller net.Conn
}

// answer sends the result to the caller in one line.
func (r request) answer(err error) {
	line := "done"
	if err != nil {
		line = strings.ReplaceAll(err.Error(), "\n", " ")
	}
	// A caller that has gone does not wait for it.
	_, _ = fmt.Fprintln(r.caller, line)
}

func listen(path string, stop func()) (*control, error) {
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("making the control socket (its path must be shorter than 108 bytes): %w", err)
	}
	c := &control{listener: listener, requests: make(chan request)}
	go func() {
		for {
			caller, err := listener.Accept()
			if err != nil {
				return
			}
			c.mutex.Lock()
			c.callers = append(c.callers, caller)
			c.mutex.Unlock()
			go func() {
				line, _ := bufio.NewReader(caller).ReadString('\n')
				if line == "stop\n" {
					stop()
				}
				if line == "restart-providers\n" {
					c.requests <- request{do: restartProviders, caller: caller}
				}
				if to, is := strings.CutPrefix(line, "upgrade "); is {
					c.upgrade(to, caller)
				}
			}()
		}
	}()
	return c, nil
}

// upgrade passes an upgrade on to whoever runs the cluster.
func (c *control) upgrade(text string, caller net.Conn) {
	to, err := parseUpgrade(text)
	request := request{caller: caller, do: func(ctx context.Context, cluster *cluster) error {
		return cluster.upgrade(ctx, to)
	}}
	if err != nil {
		request.answer(err)
		return
	}
	c.requests <- request
}

func (c *control) close() {
	c.listener.Close()
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, caller := range c.callers {
		caller.Close()
	}
}
