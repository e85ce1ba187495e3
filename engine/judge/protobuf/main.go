// Prints the protobuf encoding of the built-in kinds that standard input lists: a line per message
// with the number, the JSON name and the type of each field, read by reflection from the tags of
// Kubernetes' own types.
package main

import (
	"bufio"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	apps "k8s.io/api/apps/v1"
	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	autoscaling "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	certificates "k8s.io/api/certificates/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	events "k8s.io/api/events/v1"
	flowcontrol "k8s.io/api/flowcontrol/v1"
	networking "k8s.io/api/networking/v1"
	node "k8s.io/api/node/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	resources "k8s.io/api/resource/v1"
	scheduling "k8s.io/api/scheduling/v1"
	storage "k8s.io/api/storage/v1"
	definitions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	registration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// The groups whose kinds can be served.
var groups = []func(*runtime.Scheme) error{
	admissionregistration.AddToScheme, apps.AddToScheme, authentication.AddToScheme,
	authorization.AddToScheme, autoscaling.AddToScheme, autoscalingv2.AddToScheme,
	batch.AddToScheme, certificates.AddToScheme, coordination.AddToScheme, core.AddToScheme,
	definitions.AddToScheme, discovery.AddToScheme, events.AddToScheme,
	flowcontrol.AddToScheme, networking.AddToScheme, node.AddToScheme, policy.AddToScheme,
	rbac.AddToScheme, registration.AddToScheme, resources.AddToScheme, scheduling.AddToScheme,
	storage.AddToScheme,
}

// The kinds that are always read, by apiVersion; a star means any.
var kinds = map[string][]any{
	"*": {meta.DeleteOptions{}},
}

// Adds the kinds that are served; standard input has an apiVersion and a kind per line.
func readKinds() {
	scheme := runtime.NewScheme()
	for _, add := range groups {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		version, kind, _ := strings.Cut(lines.Text(), " ")
		object, err := scheme.New(schema.FromAPIVersionAndKind(version, kind))
		if err != nil {
			panic(err)
		}
		t := reflect.TypeOf(object).Elem()
		kinds[version] = append(kinds[version], reflect.Zero(t).Interface())
	}
}

// Types whose JSON differs from that of their fields.
var special = map[reflect.Type]string{
	reflect.TypeFor[meta.Time]():                                "time",
	reflect.TypeFor[meta.MicroTime]():                           "microtime",
	reflect.TypeFor[meta.FieldsV1]():                            "raw",
	reflect.TypeFor[runtime.RawExtension]():                     "raw",
	reflect.TypeFor[definitions.JSON]():                         "raw",
	reflect.TypeFor[resource.Quantity]():                        "quantity",
	reflect.TypeFor[intstr.IntOrString]():                       "intorstring",
	reflect.TypeFor[definitions.JSONSchemaPropsOrBool]():        "schemaorbool",
	reflect.TypeFor[definitions.JSONSchemaPropsOrArray]():       "schemaorlist",
	reflect.TypeFor[definitions.JSONSchemaPropsOrStringArray](): "schemaorstrings",
}

type table map[string]string

func main() {
	readKinds()
	if len(os.Args) > 1 {
		map[string]func(){"empty": printEmpty, "types": printTypes}[os.Args[1]]()
		return
	}
	messages := table{}
	var lines []string
	for version, all := range kinds {
		for _, kind := range all {
			t := reflect.TypeOf(kind)
			messages.add(t)
			lines = append(lines, fmt.Sprintf("kind %s %s %s", version, t.Name(), name(t)))
		}
	}
	for message, fields := range messages {
		lines = append(lines, strings.TrimSpace("message "+message+" "+fields))
	}
	sort.Strings(lines)
	for _, line := range lines {
		fmt.Println(line)
	}
}

// Group, version and type: two versions of a group have types of the same name.
func name(t reflect.Type) string {
	path := strings.Split(t.PkgPath(), "/")
	return strings.Join(path[len(path)-2:], ".") + "." + t.Name()
}

func (all table) add(t reflect.Type) {
	if _, known := all[name(t)]; known {
		return
	}
	all[name(t)] = ""
	var fields []string
	for i := range t.NumField() {
		field := t.Field(i)
		tag := field.Tag.Get("protobuf")
		if tag == "" || tag == "-" {
			continue
		}
		json, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if json == "" {
			json = "-"
		}
		number := strings.Split(tag, ",")[1]
		text := all.shape(field.Type)
		// JSON omits a zero value that protobuf contains, unless the field is a pointer or has no
		// omitempty.
		meant := field.Type.Kind() == reflect.Pointer || !strings.Contains(options, "omitempty")
		if meant {
			text += "!"
		}
		fields = append(fields, number+"="+json+"="+text)
	}
	all[name(t)] = strings.Join(fields, " ")
}

func (all table) shape(t reflect.Type) string {
	if word, found := special[t]; found {
		return word + all.parts(word)
	}
	switch t.Kind() {
	case reflect.Pointer:
		return all.shape(t.Elem())
	case reflect.Bool:
		return "bool"
	case reflect.String:
		return "string"
	case reflect.Int32, reflect.Int64:
		return "int"
	case reflect.Float64:
		return "double"
	case reflect.Map:
		return "map:" + all.element(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		return "list:" + all.shape(t.Elem())
	case reflect.Struct:
		all.add(t)
		return name(t)
	}
	panic("no shape: " + t.String())
}

// In a map, a list type is a message with items.
func (all table) element(t reflect.Type) string {
	if t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8 {
		return "items:" + all.shape(t.Elem())
	}
	return all.shape(t)
}

func (all table) parts(word string) string {
	if strings.HasPrefix(word, "schema") {
		all.add(reflect.TypeFor[definitions.JSONSchemaProps]())
	}
	return ""
}
