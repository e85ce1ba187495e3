// Kstatus prints the kstatus of a Kubernetes object, which it reads as JSON from standard input.
//
// It prints one line: the status (Current, InProgress, Failed, Terminating, NotFound, Unknown), a
// tab and the message. Flux and kpt use the same status.
package main

import (
	"fmt"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

func main() {
	if err := judge(); err != nil {
		fmt.Fprintln(os.Stderr, "kstatus:", err)
		os.Exit(1)
	}
}

func judge() error {
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		return fmt.Errorf("reading standard input: %w", err)
	}
	var object unstructured.Unstructured
	if err := object.UnmarshalJSON(text); err != nil {
		return fmt.Errorf("reading an object: %w", err)
	}
	result, err := status.Compute(&object)
	if err != nil {
		return fmt.Errorf("computing its status: %w", err)
	}
	fmt.Printf("%s\t%s\n", result.Status, result.Message)
	return nil
}
