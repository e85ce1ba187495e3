package main

import (
	"fmt"
	"reflect"
	"sort"
	"strings"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A line per struct with the JSON names of its fields in Go's order, in which they are encoded: `*`
// before the name of a pointer, `:` before a Go name that is not the JSON name with an uppercase first
// letter, `@` before the structs that a field is embedded by, and `=` before a type that is no struct
// and has a name of its own.
func printTypes() {
	found := map[string][]string{}
	for _, all := range kinds {
		for _, kind := range all {
			collect(reflect.TypeOf(kind), found, typeOf)
		}
	}
	var lines []string
	for name, fields := range found {
		lines = append(lines, strings.TrimSpace(name+" "+strings.Join(fields, " ")))
	}
	sort.Strings(lines)
	fmt.Println(strings.Join(lines, "\n"))
}

func typeOf(t reflect.Type, found map[string][]string) []string {
	return typesOf(t, "", found)
}

// The fields of a struct, which may be embedded in another.
func typesOf(t reflect.Type, within string, found map[string][]string) []string {
	var fields []string
	for i := range t.NumField() {
		field := t.Field(i)
		tag, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Type == reflect.TypeFor[meta.TypeMeta]() {
			// It is decoded before the rest.
			fields = append(fields, "kind", "apiVersion:APIVersion")
			continue
		}
		if field.Anonymous && tag == "" {
			fields = append(fields, typesOf(field.Type, strings.TrimPrefix(within+"."+field.Name, "."), found)...)
			continue
		}
		collect(field.Type, found, typeOf)
		text := tag
		if field.Type.Kind() == reflect.Pointer {
			text = "*" + text
		}
		if field.Name != strings.ToUpper(tag[:1])+tag[1:] {
			text += ":" + field.Name
		}
		if within != "" {
			text += "@" + within
		}
		own := field.Type
		for own.Kind() == reflect.Pointer {
			own = own.Elem()
		}
		if named(own) {
			text += "=" + own.String()
		}
		fields = append(fields, text)
	}
	return fields
}

// Whether the type or one of its elements is no struct and has a name, or is a byte.
func named(t reflect.Type) bool {
	if t.Kind() == reflect.Struct || special[t] != "" {
		return false
	}
	if t.PkgPath() != "" || t.Kind() == reflect.Uint8 {
		return true
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		return named(t.Elem())
	case reflect.Map:
		return named(t.Key()) || named(t.Elem())
	}
	return false
}
