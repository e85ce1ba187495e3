package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
)

// control is a socket in the state directory. The line "stop" ends the cluster; the connection
// stays open until the cluster has ended, so that a caller can wait for it. The line "upgrade",
// with what to run, and the line "restart-providers" get one line as response when they are done.
type control struct {
	listener net.Listener
	requests chan request
	mutex    sync.Mutex
	callers  []net.Conn
}

// request is a request of a caller to the cluster.
type request struct {
	do func(context.Context, *cluster) error
	// caller receives the result in one line.
	caller net.Conn
}

// answer sends the result to the caller in one line.
func (r request) answer(err error) {
	line := "done"
	if err != nil {
		line = strings.ReplaceAll(err.Error(), "\n", " ")
	}
	// The caller may have closed the connection.
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

// upgrade forwards an upgrade to the loop that runs the cluster.
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
