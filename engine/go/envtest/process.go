package envtest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	programName     = "kubemu"
	programVariable = "TEST_ASSET_KUBEMU"

	// announcement begins the line that the program prints when it listens, and after which the
	// kubeconfig can be read.
	announcement = "export KUBECONFIG="

	// keptOutput is how much of what the program has printed last an error has.
	keptOutput = 4096
)

// onPath looks for the program on the PATH.
func onPath() (string, error) {
	path, err := exec.LookPath(programName)
	if err != nil {
		return "", fmt.Errorf("there is no %[1]s on the PATH (%[2]w); install it with `cargo install --locked "+
			"--git https://github.com/finos/5-spot %[1]s`, or set %[3]s to its path", programName, err, programVariable)
	}
	return path, nil
}

// process is a program that runs.
type process struct {
	command *exec.Cmd
	// folder has the program's files.
	folder string
	// ended is closed after the program has ended, with the error in err.
	ended chan struct{}
	err   error
	// last is the end of what it has printed on standard error.
	last *tail
}

// start starts the program and waits until it listens, and returns its kubeconfig.
func start(path string, flags []string, server *APIServer, timeout time.Duration) (*process, []byte, error) {
	folder, err := os.MkdirTemp("", "kubemu-envtest-")
	if err != nil {
		return nil, nil, err
	}
	kubeconfig := filepath.Join(folder, "kubeconfig")
	command := exec.Command(path, append([]string{"serve", "--kubeconfig=" + kubeconfig}, flags...)...)
	announced := &watcher{next: server.Out, found: make(chan struct{})}
	last := &tail{next: server.Err}
	// Both are pipes. When this process ends, the program cannot print any longer, and ends too.
	command.Stdout, command.Stderr = announced, last
	// Ctrl-C is for the tests, which stop the program themselves.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := command.Start(); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("starting %s: %w", path, err), os.RemoveAll(folder))
	}
	started := &process{command: command, folder: folder, ended: make(chan struct{}), last: last}
	go func() {
		started.err = command.Wait()
		close(started.ended)
	}()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-announced.found:
		text, err := os.ReadFile(kubeconfig)
		if err != nil {
			return nil, nil, errors.Join(err, started.kill())
		}
		return started, text, nil
	case <-started.ended:
		err := fmt.Errorf("%s ended before it was ready: %w\n%s", command, started.err, last)
		return nil, nil, errors.Join(err, os.RemoveAll(folder))
	case <-timer.C:
		err := fmt.Errorf("%s was not ready within %s\n%s", command, timeout, last)
		return nil, nil, errors.Join(err, started.kill())
	}
}

// stop ends the program and removes its files.
func (p *process) stop(timeout time.Duration) error {
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return errors.Join(err, p.kill())
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-p.ended:
	case <-timer.C:
		return errors.Join(fmt.Errorf("%s did not end within %s", p.command, timeout), p.kill())
	}
	var err error
	if p.err != nil {
		err = fmt.Errorf("%s ended: %w\n%s", p.command, p.err, p.last)
	}
	return errors.Join(err, os.RemoveAll(p.folder))
}

// kill ends the program at once and removes its files.
func (p *process) kill() error {
	if err := p.command.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.ended
	return os.RemoveAll(p.folder)
}

// watcher passes text on, and closes found after the announcement.
type watcher struct {
	next  io.Writer
	found chan struct{}
	line  []byte
	done  bool
}

func (w *watcher) Write(text []byte) (int, error) {
	for _, part := range bytes.SplitAfter(text, []byte("\n")) {
		if w.done {
			break
		}
		w.line = append(w.line, part...)
		if !bytes.HasSuffix(part, []byte("\n")) {
			continue
		}
		if bytes.HasPrefix(w.line, []byte(announcement)) {
			w.done = true
			close(w.found)
		}
		w.line = nil
	}
	if w.next == nil {
		return len(text), nil
	}
	return w.next.Write(text)
}

// tail passes text on, and keeps the end of it.
type tail struct {
	next io.Writer
	lock sync.Mutex
	kept []byte
}

func (t *tail) Write(text []byte) (int, error) {
	t.lock.Lock()
	t.kept = append(t.kept, text...)
	t.kept = t.kept[max(0, len(t.kept)-keptOutput):]
	t.lock.Unlock()
	if t.next == nil {
		return len(text), nil
	}
	return t.next.Write(text)
}

func (t *tail) String() string {
	t.lock.Lock()
	defer t.lock.Unlock()
	return strings.TrimSpace(string(t.kept))
}
