package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"sort"
	"strings"
)

// The JSON that Go writes for an empty struct, and the fields that it omits when they are empty.
type empty struct {
	Written map[string]any `json:"written,omitempty"`
	Omitted []string       `json:"omitted,omitempty"`
}

func printEmpty() {
	found := map[string]empty{}
	for _, all := range kinds {
		for _, kind := range all {
			collect(reflect.TypeOf(kind), found)
		}
	}
	var lines []string
	for name, it := range found {
		if len(it.Written)+len(it.Omitted) > 0 {
			text, err := json.Marshal(it)
			if err != nil {
				panic(err)
			}
			lines = append(lines, fmt.Sprintf("%q:%s", name, text))
		}
	}
	sort.Strings(lines)
	fmt.Println("{\n" + strings.Join(lines, ",\n") + "\n}")
}

// The name of the type in OpenAPI.
func definition(t reflect.Type) string {
	host, rest, _ := strings.Cut(t.PkgPath(), "/")
	labels := strings.Split(host, ".")
	for i, j := 0, len(labels)-1; i < j; i, j = i+1, j-1 {
		labels[i], labels[j] = labels[j], labels[i]
	}
	return strings.Join(labels, ".") + "." + strings.ReplaceAll(rest, "/", ".") + "." + t.Name()
}

func collect(t reflect.Type, found map[string]empty) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		collect(t.Elem(), found)
		return
	case reflect.Struct:
	default:
		return
	}
	name := definition(t)
	if _, known := found[name]; known || special[t] != "" {
		return
	}
	it := empty{Written: zero(t)}
	found[name] = it
	it.Omitted = omitted(t, found)
	sort.Strings(it.Omitted)
	found[name] = it
}

func zero(t reflect.Type) map[string]any {
	text, err := json.Marshal(reflect.Zero(t).Interface())
	if err != nil {
		panic(err)
	}
	var written map[string]any
	if err := json.Unmarshal(text, &written); err != nil {
		panic(err)
	}
	return written
}

// The fields that are omitted when they are empty, including those of embedded structs.
func omitted(t reflect.Type, found map[string]empty) []string {
	var names []string
	for i := range t.NumField() {
		field := t.Field(i)
		tag, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous && tag == "" {
			names = append(names, omitted(field.Type, found)...)
			continue
		}
		collect(field.Type, found)
		kind := field.Type.Kind()
		whole := kind != reflect.Pointer && kind != reflect.Struct
		if whole && strings.Contains(options, "omit") {
			names = append(names, tag)
		}
	}
	return names
}
