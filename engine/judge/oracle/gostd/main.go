// Command gostd returns the results of Go's standard library, with which engine/crates/gostd is compared.
//
// It reads one question per line, {"function": .., "text": ..}, and writes one answer per line,
// both as JSON. An answer is the result of the function, or its error.
package main

import (
	"bufio"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// question has the name and the argument of a function.
type question struct {
	Function string `json:"function"`
	Text     string `json:"text"`
}

// functions are named as in Go, and convert Go's results to JSON.
var functions = map[string]func(text string) (any, error){
	"url.Parse":            parseURL,
	"url.ParseRequestURI":  parseRequestURI,
	"url.QueryUnescape":    func(text string) (any, error) { return url.QueryUnescape(text) },
	"base64.URLEncoding":   decodeBase64,
	"pem.Decode":           decodePEM,
	"netip.ParseAddr":      parseAddr,
	"strconv.Quote":        func(text string) (any, error) { return strconv.Quote(text), nil },
	"strconv.ParseFloat":   parseFloat,
	"strconv.ParseUint":    parseUint,
	"time.ParseDuration":   parseDuration,
	"time.Parse(DateOnly)": func(text string) (any, error) { return parseTime(time.DateOnly, text) },
	"time.Parse(no zone)":  func(text string) (any, error) { return parseTime("2006-01-02T15:04:05", text) },
	"unicode":              classes,
	"regexp.Compile":       compile,
}

// subjects are the texts that patterns are matched with.
var subjects = []string{"", "a", "abc", "ABC-1.2", "10.0.0.1", "é日\n_ \t", "x{2}", "2024-01-01"}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 0, 1<<16), 1<<24)
	out := bufio.NewWriter(os.Stdout)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for lines.Scan() {
		if err := encoder.Encode(answer(lines.Bytes())); err != nil {
			fail(err)
		}
		if err := out.Flush(); err != nil {
			fail(err)
		}
	}
	if err := lines.Err(); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "error:", err)
	os.Exit(1)
}

func answer(line []byte) any {
	var asked question
	if err := json.Unmarshal(line, &asked); err != nil {
		return map[string]any{"malformed": err.Error()}
	}
	function, ok := functions[asked.Function]
	if !ok {
		return map[string]any{"malformed": "no function " + asked.Function}
	}
	value, err := function(asked.Text)
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	return map[string]any{"value": value}
}

func parseURL(text string) (any, error) {
	parsed, err := url.Parse(text)
	if err != nil {
		return nil, err
	}
	parts := []string{parsed.String(), parsed.Scheme, parsed.Host, parsed.Hostname(), parsed.Port(),
		parsed.EscapedPath(), parsed.RawQuery}
	for i, part := range parts {
		// JSON cannot represent other bytes.
		parts[i] = strings.ToValidUTF8(part, "\uFFFD")
	}
	return parts, nil
}

func parseRequestURI(text string) (any, error) {
	_, err := url.ParseRequestURI(text)
	return true, err
}

func decodeBase64(text string) (any, error) {
	decoded, err := base64.URLEncoding.DecodeString(text)
	if err != nil {
		return nil, err
	}
	return hex.EncodeToString(decoded), nil
}

func decodePEM(text string) (any, error) {
	block, rest := pem.Decode([]byte(text))
	if block == nil {
		return nil, nil
	}
	label := strings.ToValidUTF8(block.Type, "\uFFFD")
	return []any{label, len(block.Headers) > 0, hex.EncodeToString(block.Bytes), strings.ToValidUTF8(string(rest), "\uFFFD")}, nil
}

func parseAddr(text string) (any, error) {
	address, err := netip.ParseAddr(text)
	return []any{address.WithZone("").String(), address.Zone() != ""}, err
}

// parseFloat returns the shortest text that represents the float.
func parseFloat(text string) (any, error) {
	value, err := strconv.ParseFloat(text, 64)
	return strconv.FormatFloat(value, 'g', -1, 64), unsaid(err)
}

func parseUint(text string) (any, error) {
	value, err := strconv.ParseUint(text, 10, 64)
	return strconv.FormatUint(value, 10), unsaid(err)
}

func parseDuration(text string) (any, error) {
	value, err := time.ParseDuration(text)
	return strconv.FormatInt(int64(value), 10), unsaid(err)
}

// unsaid replaces an error whose text no API server shows.
func unsaid(err error) error {
	if err != nil {
		return fmt.Errorf("refused")
	}
	return nil
}

func parseTime(layout, text string) (any, error) {
	value, err := time.Parse(layout, text)
	second := value.Hour()*3600 + value.Minute()*60 + value.Second()
	return []int{value.Year(), int(value.Month()), value.Day(), second, value.Nanosecond()}, err
}

// classes reports whether the first character is printable, a letter, a letter or symbol.
func classes(text string) (any, error) {
	for _, r := range text {
		return []bool{strconv.IsPrint(r), unicode.IsLetter(r), unicode.IsLetter(r) || unicode.IsSymbol(r)}, nil
	}
	return []bool{}, nil
}

func compile(text string) (any, error) {
	pattern, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	matched := make([]bool, 0, len(subjects))
	for _, subject := range subjects {
		matched = append(matched, pattern.MatchString(subject))
	}
	return matched, nil
}
