// Command oracle computes an API server's responses with Kubernetes' own libraries: to a CRD, to
// objects of its kind, to policies, and to requests that these policies evaluate.
//
// It reads one question per line and writes one answer per line, both as JSON (see question.go). No
// state is kept between questions. A question that takes too long gets the answer "unanswered", and
// ends the program, because the computation cannot be stopped otherwise.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

// maxLine is the maximum length of a question, in bytes.
const maxLine = 64 << 20

func main() {
	// The libraries' log is not part of an answer.
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	utilruntime.ErrorHandlers = nil
	task := serve
	if len(os.Args) > 1 && os.Args[1] == "speed" {
		task = speed
	} else {
		// There is more memory than a question needs, and no state is kept.
		debug.SetGCPercent(800)
	}
	if err := task(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// timeLimit is the timeout of a question. The libraries expand some quantities of a dozen
// characters to a thousand million digits.
const timeLimit = 20 * time.Second

// serve answers every line of in until its end, or until a question takes too long.
func serve(in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 0, 1<<20), maxLine)
	writer := bufio.NewWriterSize(out, 1<<20)
	encoder := json.NewEncoder(writer)
	encoder.SetEscapeHTML(false)
	for lines.Scan() {
		given := answerInTime(lines.Bytes())
		if err := encoder.Encode(given); err != nil {
			return fmt.Errorf("writing an answer: %w", err)
		}
		if err := writer.Flush(); err != nil {
			return fmt.Errorf("writing an answer: %w", err)
		}
		if given.Unanswered != "" {
			return nil
		}
	}
	return lines.Err()
}

// answerInTime answers one line, or reports a timeout.
func answerInTime(line []byte) answer {
	given := make(chan answer, 1)
	go func() { given <- answerLine(line) }()
	late := time.NewTimer(timeLimit)
	defer late.Stop()
	select {
	case answer := <-given:
		return answer
	case <-late.C:
		return answer{Unanswered: fmt.Sprintf("not within %v", timeLimit)}
	}
}

// answerLine answers one line. A panic of the libraries is reported as an answer.
func answerLine(line []byte) (given answer) {
	defer func() {
		if cause := recover(); cause != nil {
			given = answer{Panic: fmt.Sprintf("%v\n%s", cause, debug.Stack())}
		}
	}()
	var asked question
	if err := json.Unmarshal(line, &asked); err != nil {
		return answer{Malformed: err.Error()}
	}
	return asked.answer()
}
