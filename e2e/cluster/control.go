package main

import (
	"bufio"
	"fmt"
	"net"
	"sync"
)

// control is a socket in the state directory. A line "stop" ends the cluster; the
// connection stays open until it has ended, so that its end can be waited for.
type control struct {
	listener net.Listener
	mutex    sync.Mutex
	callers  []net.Conn
}

func listen(path string, stop func()) (*control, error) {
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("making the control socket (its path must be shorter than 108 bytes): %w", err)
	}
	c := &control{listener: listener}
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
				if line, _ := bufio.NewReader(caller).ReadString('\n'); line == "stop\n" {
					stop()
				}
			}()
		}
	}()
	return c, nil
}

func (c *control) close() {
	c.listener.Close()
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, caller := range c.callers {
		caller.Close()
	}
}
