package main

import (
	"fmt"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// typeChecks returns the warnings that the server writes into the status of each policy.
func (s *policyState) typeChecks(registered *definition) [][]typeWarning {
	mapper := meta.NewDefaultRESTMapper(nil)
	served := registered.external.Spec
	for _, version := range served.Versions {
		group := schema.GroupVersion{Group: served.Group, Version: version.Name}
		mapper.AddSpecific(group.WithKind(served.Names.Kind), group.WithResource(served.Names.Plural),
			group.WithResource(served.Names.Singular), meta.RESTScopeNamespace)
	}
	checker := validating.TypeChecker{SchemaResolver: &published{registered}, RestMapper: mapper}
	var all [][]typeWarning
	for _, policy := range s.policies {
		warnings := []typeWarning{}
		for _, one := range checker.Check(policy) {
			warnings = append(warnings, typeWarning{Field: one.FieldRef, Warning: one.Warning})
		}
		all = append(all, warnings)
	}
	return all
}

// published resolves the schemas that the server publishes for a definition.
type published struct {
	definition *definition
}

func (p *published) ResolveSchema(kind schema.GroupVersionKind) (*spec.Schema, error) {
	served := p.definition.external.Spec
	if kind.Group != served.Group || kind.Kind != served.Names.Kind {
		return nil, fmt.Errorf("no schema for %s: %w", kind, resolver.ErrSchemaNotFound)
	}
	document, err := builder.BuildOpenAPIV3(&p.definition.external, kind.Version, builder.Options{})
	if err != nil {
		return nil, err
	}
	of := func(reference string) (*spec.Schema, bool) {
		name := strings.TrimPrefix(reference, "#/components/schemas/")
		found, ok := document.Components.Schemas[name]
		return found, ok
	}
	for name := range document.Components.Schemas {
		if strings.HasSuffix(name, "."+kind.Kind) {
			return resolver.PopulateRefs(of, name)
		}
	}
	return nil, fmt.Errorf("no schema for %s: %w", kind, resolver.ErrSchemaNotFound)
}
