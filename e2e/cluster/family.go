package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
)

const (
	// patience is the timeout for a child to become ready or to end.
	patience = 3 * time.Minute
	// interval is the polling interval.
	interval = 100 * time.Millisecond
)

// child is a child process.
type child struct {
	name    string
	log     string
	command *exec.Cmd
	// environment is added to that of this process.
	environment []string
	// health is the URL at which a manager reports that it is ready.
	health string
	ended  chan struct{}
	// stopping is closed when the child may end.
	stopping chan struct{}
}

// family has the children in the order of their start.
type family struct {
	logs     string
	children []*child
	// died receives a child that ended without being stopped.
	died chan *child
	// stopping is closed when all children may end.
	stopping chan struct{}
}

func newFamily(logs string) *family {
	return &family{logs: logs, died: make(chan *child, 8), stopping: make(chan struct{})}
}

// start starts a program. Its output goes to a log file with the given name.
//
// The child is in a process group of its own, so that a Ctrl-C only reaches it through stop, in
// order. It is killed if this process ends without stopping it.
func (f *family) start(name, program string, environment []string, arguments ...string) (*child, error) {
	log, err := os.OpenFile(filepath.Join(f.logs, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	command := exec.Command(program, arguments...)
	command.Env = append(os.Environ(), environment...)
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := command.Start(); err != nil {
		return nil, err
	}
	c := &child{
		name:        name,
		log:         log.Name(),
		command:     command,
		environment: environment,
		ended:       make(chan struct{}),
		stopping:    make(chan struct{}),
	}
	f.children = append(f.children, c)
	go func() {
		_ = command.Wait()
		close(c.ended)
		select {
		case <-f.stopping:
		case <-c.stopping:
		default:
			f.died <- c
		}
	}()
	return c, nil
}

// end stops the child with this name, if any, and returns it.
func (f *family) end(name string) *child {
	at := slices.IndexFunc(f.children, func(c *child) bool { return c.name == name })
	if at < 0 {
		return nil
	}
	c := f.children[at]
	close(c.stopping)
	c.stop()
	f.children = slices.Delete(f.children, at, at+1)
	return c
}

// replace stops the child with this name, and starts another program with the same arguments.
func (f *family) replace(name, program string) (*child, error) {
	before := f.end(name)
	if before == nil {
		return nil, fmt.Errorf("%s does not run", name)
	}
	c, err := f.start(name, program, before.environment, before.command.Args[1:]...)
	if err != nil {
		return nil, err
	}
	c.health = before.health
	return c, nil
}

// stop ends the children, the last one first. It may be called several times.
func (f *family) stop() {
	select {
	case <-f.stopping:
	default:
		close(f.stopping)
	}
	for len(f.children) > 0 {
		last := len(f.children) - 1
		f.children[last].stop()
		f.children = f.children[:last]
	}
}

func (c *child) stop() {
	_ = c.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-c.ended:
	case <-time.After(10 * time.Second):
		_ = c.command.Process.Kill()
		<-c.ended
	}
}

// ready waits until url responds with 200 or the child has ended. The certificate is not verified,
// because the response only decides when to continue.
func (c *child) ready(ctx context.Context, url string) error {
	client := &http.Client{
		Timeout:   5 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
	}
	defer client.CloseIdleConnections()
	return c.until(ctx, url, func() bool {
		response, err := client.Get(url)
		if err != nil {
			return false
		}
		response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
}

// until polls until holds returns true or the child has ended.
func (c *child) until(ctx context.Context, what string, holds func() bool) error {
	if err := until(ctx, what, c.ended, holds); err != nil {
		return fmt.Errorf("%w; see %s", err, c.log)
	}
	return nil
}

// until polls until holds returns true, ended is closed, or the timeout expires.
func until(ctx context.Context, what string, ended <-chan struct{}, holds func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for !holds() {
		select {
		case <-ticker.C:
		case <-ended:
			return fmt.Errorf("waiting for %s: the process has ended", what)
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, ctx.Err())
		}
	}
	return nil
}

// freePorts finds unused loopback ports.
func freePorts(count int) ([]int, error) {
	var ports []int
	for range count {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		// All are closed at the end, so that each port is different.
		defer listener.Close()
		ports = append(ports, listener.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

func port(number int) string { return strconv.Itoa(number) }
