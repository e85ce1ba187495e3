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
			collect(reflect.TypeOf(kind), found, emptyOf)
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

// Adds what is read of a struct, and of those that it consists of: `read` collects the types of its
// fields. A struct is known while it is read, because it may contain itself.
func collect[T any](t reflect.Type, found map[string]T, read func(reflect.Type, map[string]T) T) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		collect(t.Elem(), found, read)
		return
	case reflect.Struct:
	default:
		return
	}
	name := definition(t)
	if _, known := found[name]; known || special[t] != "" {
		return
	}
	var none T
	found[name] = none
	found[name] = read(t, found)
}

func emptyOf(t reflect.Type, found map[string]empty) empty {
	names := omitted(t, found)
	sort.Strings(names)
	return empty{Written: zero(t), Omitted: names}
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
		collect(field.Type, found, emptyOf)
		kind := field.Type.Kind()
		whole := kind != reflect.Pointer && kind != reflect.Struct
		if whole && strings.Contains(options, "omit") {
			names = append(names, tag)
		}
	}
	return names
}
