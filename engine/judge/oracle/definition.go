package main

import (
	"context"
	"encoding/json"
	"math"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

var (
	extensionScheme = runtime.NewScheme()
	extensionCodecs = serializer.NewCodecFactory(extensionScheme)
)

func init() {
	install.Install(extensionScheme)
}

// definition is a CRD in both of its forms.
type definition struct {
	external apiextensionsv1.CustomResourceDefinition
	internal apiextensions.CustomResourceDefinition
	// versions are those in which objects have been written.
	versions map[string]*version
}

// register returns the server's response to a CRD. The definition is nil if it cannot be decoded.
func register(text, oldText json.RawMessage) (*definition, *registration) {
	read, err := readDefinition(text)
	if err != nil {
		return nil, &registration{Undecodable: err.Error(), Errors: []string{}}
	}
	strategy := customresourcedefinition.NewStrategy(extensionScheme)
	ctx := context.Background()
	if oldText == nil {
		strategy.PrepareForCreate(ctx, &read.internal)
		return read, &registration{Errors: texts(strategy.Validate(ctx, &read.internal))}
	}
	old, err := readDefinition(oldText)
	if err != nil {
		return nil, &registration{Undecodable: "the old one: " + err.Error(), Errors: []string{}}
	}
	strategy.PrepareForUpdate(ctx, &read.internal, &old.internal)
	errors := strategy.ValidateUpdate(ctx, &read.internal, &old.internal)
	return read, &registration{Errors: texts(errors)}
}

func readDefinition(text json.RawMessage) (*definition, error) {
	read := definition{versions: map[string]*version{}}
	decoder := extensionCodecs.UniversalDeserializer()
	if _, _, err := decoder.Decode(text, nil, &read.external); err != nil {
		return nil, err
	}
	extensionScheme.Default(&read.external)
	if err := extensionScheme.Convert(&read.external, &read.internal, nil); err != nil {
		return nil, err
	}
	return &read, nil
}

// schema returns that of a version, at either place of the definition.
func (d *definition) schema(version string) *apiextensions.JSONSchemaProps {
	kept, err := apiextensions.GetSchemaForVersion(&d.internal, version)
	if err != nil || kept == nil {
		return nil
	}
	return kept.OpenAPIV3Schema
}

// costs returns the estimates of all expressions of the first version.
func (d *definition) costs() []ruleCost {
	if len(d.internal.Spec.Versions) == 0 {
		return nil
	}
	schema := d.schema(d.internal.Spec.Versions[0].Name)
	if schema == nil {
		return nil
	}
	estimates := estimates{environment: environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())}
	estimates.walk(schema, field.NewPath("openAPIV3Schema"), validation.RootCELContext(schema))
	return estimates.costs
}

type estimates struct {
	environment *environment.EnvSet
	costs       []ruleCost
}

func (e *estimates) walk(schema *apiextensions.JSONSchemaProps, path *field.Path, node *validation.CELSchemaContext) {
	if each := schema.AdditionalProperties; each != nil && each.Schema != nil {
		e.walk(each.Schema, path.Child("additionalProperties"), node.ChildAdditionalPropertiesContext(each.Schema))
	}
	names := make([]string, 0, len(schema.Properties))
	for name := range schema.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		property := schema.Properties[name]
		e.walk(&property, path.Child("properties").Key(name), node.ChildPropertyContext(&property, name))
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		e.walk(schema.Items.Schema, path.Child("items"), node.ChildItemsContext(schema.Items.Schema))
	}
	if len(schema.XValidations) > 0 {
		e.own(path.Child("x-kubernetes-validations"), node)
	}
}

// own adds the estimates of one node.
func (e *estimates) own(path *field.Path, node *validation.CELSchemaContext) {
	types, err := node.TypeInfo()
	if err != nil || types == nil {
		return
	}
	results, err := cel.Compile(types.Schema, types.DeclType, celconfig.PerCallLimit, e.environment, cel.NewExpressionsEnvLoader())
	if err != nil {
		return
	}
	for i, result := range results {
		if result.Program != nil && result.Error == nil {
			times := result.MaxCardinality
			if node.MaxCardinality != nil {
				times = *node.MaxCardinality
			}
			rule := path.Index(i).Child("rule").String()
			e.costs = append(e.costs, ruleCost{Path: rule, Once: result.MaxCost, Total: product(result.MaxCost, times)})
		}
		if result.MessageExpression != nil && result.MessageExpressionError == nil {
			message := path.Index(i).Child("messageExpression").String()
			cost := result.MessageExpressionMaxCost
			e.costs = append(e.costs, ruleCost{Path: message, Once: cost, Total: cost})
		}
	}
}

// product returns the largest number if the result overflows.
func product(cost, times uint64) uint64 {
	if cost == 0 || times == 0 {
		return 0
	}
	if math.MaxUint64/cost < times {
		return math.MaxUint64
	}
	return cost * times
}

// structural returns the structural schema of a version.
func (d *definition) structural(version string) (*structuralschema.Structural, error) {
	schema := d.schema(version)
	if schema == nil {
		return nil, nil
	}
	return structuralschema.NewStructural(schema)
}
