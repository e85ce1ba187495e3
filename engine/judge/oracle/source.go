package main

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission/plugin/policy/generic"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// hooks are the hooks of the server's policy source for the policies and bindings, both sorted by
// name: the policies with a binding, their compiled form, and where their parameters are found or
// why they are not.
func (s *policyState) hooks() ([]validating.PolicyHook, error) {
	policies, bindings := newIndexer(), newIndexer()
	for _, policy := range s.policies {
		_ = policies.Add(policy)
	}
	for _, binding := range s.bindings {
		_ = bindings.Add(binding)
	}
	source := generic.NewPolicySource(
		&informer{indexer: policies},
		&informer{indexer: bindings},
		validating.NewValidatingAdmissionPolicyAccessor,
		validating.NewValidatingAdmissionPolicyBindingAccessor,
		s.validator,
		&paramInformers{state: s},
		nil,
		s.mapper(),
	)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- source.Run(ctx) }()
	for !source.HasSynced() {
		select {
		case err := <-ended:
			return nil, errors.Join(errors.New("the policy source ended"), err)
		default:
			runtime.Gosched()
		}
	}
	hooks := slices.Clone(source.Hooks())
	slices.SortFunc(hooks, func(a, b validating.PolicyHook) int {
		return strings.Compare(a.Policy.Name, b.Policy.Name)
	})
	for _, hook := range hooks {
		slices.SortFunc(hook.Bindings, func(a, b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) int {
			return strings.Compare(a.Name, b.Name)
		})
	}
	return hooks, nil
}

func newIndexer() cache.Indexer {
	return cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
}

// mapper has the kinds of the existing parameters. No other kinds are served.
func (s *policyState) mapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for i := range s.asked.Params {
		param := &s.asked.Params[i]
		kind := param.GroupVersionKind()
		scope := meta.RESTScopeRoot
		if param.GetNamespace() != "" {
			scope = meta.RESTScopeNamespace
		}
		mapper.AddSpecific(kind, paramResource(kind), paramResource(kind), scope)
	}
	return mapper
}

// paramResource returns the resource of a kind of parameters. Only these informers use it.
func paramResource(kind schema.GroupVersionKind) schema.GroupVersionResource {
	return kind.GroupVersion().WithResource(strings.ToLower(kind.Kind))
}

// paramInformers have all parameters in their caches.
type paramInformers struct {
	informers.SharedInformerFactory
	state *policyState
}

func (p *paramInformers) Start(<-chan struct{}) {}

func (p *paramInformers) ForResource(resource schema.GroupVersionResource) (informers.GenericInformer, error) {
	indexer := newIndexer()
	for i := range p.state.asked.Params {
		param := &p.state.asked.Params[i]
		if paramResource(param.GroupVersionKind()) == resource {
			_ = indexer.Add(param)
		}
	}
	return &informer{indexer: indexer}, nil
}

// informer has all objects in its cache.
type informer struct {
	cache.SharedIndexInformer
	indexer cache.Indexer
}

func (i *informer) Informer() cache.SharedIndexInformer { return i }
func (i *informer) HasSynced() bool                     { return true }
func (i *informer) GetIndexer() cache.Indexer           { return i.indexer }
func (i *informer) Lister() cache.GenericLister {
	return cache.NewGenericLister(i.indexer, schema.GroupResource{Resource: "params"})
}

// Nothing changes after the initial list.
func (i *informer) AddEventHandler(cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return nil, nil
}

func (i *informer) RemoveEventHandler(cache.ResourceEventHandlerRegistration) error { return nil }
