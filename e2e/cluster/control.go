package main

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"sync"
)

// control is a socket in the state directory. A line "stop" ends the cluster; the
// connection stays open until it has ended, so that its end can be waited for. A line "upgrade"
// with what is to run is answered by a line when that runs.
type control struct {
	listener net.Listener
	upgrades chan upgrade
	mutex    sync.Mutex
	callers  []net.Conn
}

func listen(path string, stop func()) (*control, error) {
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("making the control socket (its path must be shorter than 108 bytes): %w", err)
	}
	c := &control{listener: listener, upgrades: make(chan upgrade)}
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
				if to, is := strings.CutPrefix(line, "upgrade "); is {
					c.ask(to, caller)
				}
			}()
		}
	}()
	return c, nil
}

// ask passes an upgrade on to whoever runs the cluster.
func (c *control) ask(text string, caller net.Conn) {
	to, err := parseUpgrade(text, caller)
	if err != nil {
		to.answer(err)
		return
	}
	c.upgrades <- to
}

func (c *control) close() {
	c.listener.Close()
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, caller := range c.callers {
		caller.Close()
	}
}
