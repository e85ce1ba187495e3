// Command oracle asks Kubernetes' own libraries what an API server would answer: what it
// says to a CustomResourceDefinition, to objects of its kind, to policies, and to requests
// that these policies see.
//
// It reads one question a line and writes one answer a line, both JSON (see question.go).
// Nothing is kept from one question to the next.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

// maxLine is the longest question that is read, in bytes.
const maxLine = 64 << 20

func main() {
	// There is more memory than a question needs, and nothing of it is kept.
	debug.SetGCPercent(800)
	// What the libraries log is no part of an answer.
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	utilruntime.ErrorHandlers = nil
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// serve answers every line of in until it ends.
func serve(in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 0, 1<<20), maxLine)
	writer := bufio.NewWriterSize(out, 1<<20)
	encoder := json.NewEncoder(writer)
	encoder.SetEscapeHTML(false)
	for lines.Scan() {
		if err := encoder.Encode(answerLine(lines.Bytes())); err != nil {
			return fmt.Errorf("writing an answer: %w", err)
		}
		if err := writer.Flush(); err != nil {
			return fmt.Errorf("writing an answer: %w", err)
		}
	}
	return lines.Err()
}

// answerLine answers one line; a panic of the libraries is an answer too.
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
