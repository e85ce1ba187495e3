package main

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	schemaobjectmeta "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	apiservervalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiextensions-apiserver/pkg/crdserverscheme"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource"
	apimachineryvalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/warning"
)

// strategy is the server's strategy for objects of one version.
type strategy interface {
	NamespaceScoped() bool
	Validate(context.Context, runtime.Object) field.ErrorList
	ValidateUpdate(ctx context.Context, object, old runtime.Object) field.ErrorList
	WarningsOnCreate(context.Context, runtime.Object) []string
	WarningsOnUpdate(ctx context.Context, object, old runtime.Object) []string
}

// version has the state that the server keeps for a version of a CRD.
type version struct {
	structural   *structuralschema.Structural
	main, status strategy
	// rules is nil if there are none.
	rules *cel.Validator
}

// version creates the state of a version when an object is first written in it.
func (d *definition) version(name string) (*version, error) {
	if known, ok := d.versions[name]; ok {
		return known, nil
	}
	structural, err := d.structural(name)
	if err != nil {
		return nil, err
	}
	made := &version{structural: structural}
	if made.main, made.status, err = d.strategies(name, structural); err != nil {
		return nil, err
	}
	if structural != nil {
		made.rules = cel.NewValidator(structural, true, celconfig.PerCallLimit)
	}
	d.versions[name] = made
	return made, nil
}

// write decodes an object like the server and returns the response.
func (d *definition) write(asked write) written {
	object := &unstructured.Unstructured{Object: asked.Object}
	version, err := d.version(object.GroupVersionKind().Version)
	if err != nil {
		return written{Undecodable: err.Error()}
	}
	given := written{Unknown: []string{}, Errors: []string{}, Warnings: []string{}}
	if given.Unknown, err = d.decode(object, version.structural); err != nil {
		return written{Undecodable: err.Error()}
	}
	given.Object = object.Object
	main, status := version.main, version.status
	rules := []string{}
	ctx := warning.WithWarningRecorder(context.Background(), (*recorder)(&rules))
	old := &unstructured.Unstructured{Object: asked.OldObject}
	switch asked.Operation {
	case "CREATE":
		given.Errors = texts(main.Validate(ctx, object))
		given.Warnings = main.WarningsOnCreate(ctx, object)
		old = nil
	case "UPDATE":
		given.Errors = withCommon(object, texts(main.ValidateUpdate(ctx, object, old)), main)
		given.Warnings = main.WarningsOnUpdate(ctx, object, old)
	case "STATUS":
		given.Errors = withCommon(object, texts(status.ValidateUpdate(ctx, object, old)), status)
		given.Warnings = status.WarningsOnUpdate(ctx, object, old)
	default:
		return written{Undecodable: fmt.Sprintf("no operation %q", asked.Operation)}
	}
	given.Warnings = append(given.Warnings, rules...)
	given.Cost = version.cost(object, old)
	return given
}

// withCommon adds the errors of metadata that are checked for an update of every kind, as in
// validateCommonFields of k8s.io/apiserver/pkg/registry/rest. Each error is added once.
func withCommon(object *unstructured.Unstructured, errors []string, strategy strategy) []string {
	common := apimachineryvalidation.ValidateObjectMetaAccessor(object, strategy.NamespaceScoped(),
		path.ValidatePathSegmentName, field.NewPath("metadata"))
	for _, text := range texts(common) {
		if !slices.Contains(errors, text) {
			errors = append(errors, text)
		}
	}
	return errors
}

// decode prunes, coerces and defaults an object in the order of the server's decoder.
func (d *definition) decode(object *unstructured.Unstructured, structural *structuralschema.Structural) ([]string, error) {
	for _, name := range []string{"kind", "apiVersion"} {
		if _, _, err := unstructured.NestedString(object.Object, name); err != nil {
			return nil, err
		}
	}
	gvk := object.GroupVersionKind()
	metadata, found, unknown, err := schemaobjectmeta.GetObjectMetaWithOptions(object.Object,
		schemaobjectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	if err != nil {
		return nil, err
	}
	own := gvk.Group == d.internal.Spec.Group && gvk.Kind == d.internal.Spec.Names.Kind
	if own {
		options := structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
		unknown = append(unknown, pruning.PruneWithOptions(object.Object, structural, true, options)...)
		defaulting.PruneNonNullableNullsWithoutDefaults(object.Object, structural)
		wrong, paths := schemaobjectmeta.CoerceWithOptions(nil, object.Object, structural, false,
			schemaobjectmeta.CoerceOptions{ReturnUnknownFieldPaths: true})
		if wrong != nil {
			return nil, wrong
		}
		unknown = append(unknown, paths...)
	}
	object.SetGroupVersionKind(gvk)
	if found {
		if err := schemaobjectmeta.SetObjectMeta(object.Object, metadata); err != nil {
			return nil, err
		}
	}
	if own {
		defaulting.Default(object.Object, structural)
	}
	return unknown, nil
}

// strategies returns those of the resource and of its status.
func (d *definition) strategies(version string, structural *structuralschema.Structural) (strategy, strategy, error) {
	properties := d.schema(version)
	validator, _, err := apiservervalidation.NewSchemaValidator(properties)
	if err != nil {
		return nil, nil, err
	}
	subresources, err := apiextensions.GetSubresourcesForVersion(&d.internal, version)
	if err != nil {
		return nil, nil, err
	}
	var status *apiextensions.CustomResourceSubresourceStatus
	var scale *apiextensions.CustomResourceSubresourceScale
	var statusValidator apiservervalidation.SchemaValidator
	if subresources != nil {
		status, scale = subresources.Status, subresources.Scale
	}
	if status != nil && properties != nil {
		if part, ok := properties.Properties["status"]; ok {
			if statusValidator, _, err = apiservervalidation.NewSchemaValidator(&part); err != nil {
				return nil, nil, err
			}
		}
	}
	var selectable []apiextensionsv1.SelectableField
	for _, one := range d.external.Spec.Versions {
		if one.Name == version {
			selectable = one.SelectableFields
		}
	}
	kind := schema.GroupVersionKind{Group: d.internal.Spec.Group, Version: version, Kind: d.internal.Spec.Names.Kind}
	main := customresource.NewStrategy(crdserverscheme.NewUnstructuredObjectTyper(),
		d.internal.Spec.Scope == apiextensions.NamespaceScoped, kind, validator, statusValidator,
		structural, status, scale, selectable)
	return main, customresource.NewStatusStrategy(main), nil
}

// cost returns the cost of the rules for an object.
func (v *version) cost(object, old *unstructured.Unstructured) *int64 {
	if v.rules == nil {
		return nil
	}
	var before any
	var options []cel.Option
	if old != nil {
		before = old.Object
		correlated := common.NewCorrelatedObject(object.Object, old.Object, &model.Structural{Structural: v.structural})
		options = append(options, cel.WithRatcheting(correlated))
	}
	_, left := v.rules.Validate(context.Background(), nil, v.structural, object.Object, before,
		celconfig.RuntimeCELCostBudget, options...)
	if left < 0 {
		// A limit was exceeded. The cost until then is not available.
		return nil
	}
	spent := celconfig.RuntimeCELCostBudget - left
	return &spent
}
