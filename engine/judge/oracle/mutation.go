package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/kube-openapi/pkg/builder3"
	openapicommon "k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	"k8s.io/kubernetes/pkg/generated/openapi"
)

// mutation is one mutation of a MutatingAdmissionPolicy, with the object of a built-in kind that it
// changes.
type mutation struct {
	// PatchType is ApplyConfiguration or JSONPatch.
	PatchType  string          `json:"patchType"`
	Expression string          `json:"expression"`
	Object     json.RawMessage `json:"object"`
}

// mutated is the result of a mutation.
type mutated struct {
	// Object is the whole object after the mutation, with defaults.
	Object runtime.Object `json:"object,omitempty"`
	// Uncompiled is the error if the expression does not compile.
	Uncompiled string `json:"uncompiled,omitempty"`
	// Error is the reason if the object is not changed.
	Error string `json:"error,omitempty"`
}

// converter has the schemas of the kinds in mutations.
var converter = sync.OnceValues(func() (managedfields.TypeConverter, error) {
	namer := openapinamer.NewDefinitionNamer(legacyscheme.Scheme)
	config := &openapicommon.OpenAPIV3Config{
		Info:              &spec.Info{},
		GetDefinitions:    openapi.GetOpenAPIDefinitions,
		GetDefinitionName: namer.GetDefinitionName,
	}
	schemas, err := builder3.BuildOpenAPIDefinitionsForResources(config,
		"io.k8s.api.apps.v1.Deployment", "io.k8s.api.core.v1.ConfigMap", "io.k8s.api.core.v1.Service")
	if err != nil {
		return nil, err
	}
	return managedfields.NewTypeConverter(schemas, false)
})

// apply applies one mutation like the plugin (see dispatchOne and compilePolicy there).
func (m *mutation) apply() mutated {
	object, kind, err := legacyscheme.Codecs.UniversalDeserializer().Decode(m.Object, nil, nil)
	if err != nil {
		return mutated{Error: err.Error()}
	}
	legacyscheme.Scheme.Default(object)
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		return mutated{Error: err.Error()}
	}
	may := cel.OptionalVariableDeclarations{HasAuthorizer: true, HasPatchTypes: true}
	compile := func(accessor cel.ExpressionAccessor) cel.MutatingEvaluator {
		return compiler.CompileMutatingEvaluator(accessor, may, environment.StoredExpressions)
	}
	var evaluator cel.MutatingEvaluator
	var patcher patch.Patcher
	switch m.PatchType {
	case "ApplyConfiguration":
		evaluator = compile(&patch.ApplyConfigurationCondition{Expression: m.Expression})
		patcher = patch.NewApplyConfigurationPatcher(evaluator)
	case "JSONPatch":
		evaluator = compile(&patch.JSONPatchCondition{Expression: m.Expression})
		patcher = patch.NewJSONPatcher(evaluator)
	default:
		return mutated{Error: fmt.Sprintf("no patch type %q", m.PatchType)}
	}
	if errors := evaluator.CompilationErrors(); len(errors) > 0 {
		return mutated{Uncompiled: errors[0].Error()}
	}
	types, err := converter()
	if err != nil {
		return mutated{Error: err.Error()}
	}
	metadata := object.(metav1.Object)
	resource := kind.GroupVersion().WithResource(strings.ToLower(kind.Kind) + "s")
	attributes := admission.NewAttributesRecord(object, nil, *kind, metadata.GetNamespace(), metadata.GetName(), resource,
		"", admission.Create, &metav1.CreateOptions{}, false, &user.DefaultInfo{Name: "somebody"})
	scheme := legacyscheme.Scheme
	changed, err := patcher.Patch(compiler.CreateContext(context.Background()), patch.Request{
		MatchedResource: resource,
		VersionedAttributes: &admission.VersionedAttributes{
			Attributes: attributes, VersionedObject: object, VersionedKind: *kind,
		},
		ObjectInterfaces: &admission.RuntimeObjectInterfaces{
			ObjectCreater: scheme, ObjectTyper: scheme, ObjectDefaulter: scheme, ObjectConvertor: scheme,
		},
		TypeConverter: types,
	}, celconfig.RuntimeCELCostBudget)
	if err == nil {
		changed, err = scheme.ConvertToVersion(changed, kind.GroupVersion())
	}
	if err != nil {
		return mutated{Error: err.Error()}
	}
	scheme.Default(changed)
	return mutated{Object: changed}
}
