package main

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/generic"
	"k8s.io/apiserver/pkg/admission/plugin/policy/matching"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// policyState is the state that policies are evaluated in.
type policyState struct {
	asked      *question
	policies   []*admissionregistrationv1.ValidatingAdmissionPolicy
	bindings   []*admissionregistrationv1.ValidatingAdmissionPolicyBinding
	namespaces cache.Indexer
	compiled   map[*admissionregistrationv1.ValidatingAdmissionPolicy]validating.Validator
	// meter records the cost of each evaluation of the policies.
	meter meter
}

func newPolicyState(asked *question) *policyState {
	namespaces := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for _, text := range asked.Namespaces {
		var namespace corev1.Namespace
		if json.Unmarshal(text, &namespace) == nil {
			_ = namespaces.Add(&namespace)
		}
	}
	compiled := map[*admissionregistrationv1.ValidatingAdmissionPolicy]validating.Validator{}
	return &policyState{asked: asked, namespaces: namespaces, compiled: compiled}
}

// decide evaluates every policy for a request.
func (s *policyState) decide(asked request) decision {
	given := decision{Warnings: []string{}, AuditAnnotations: map[string]string{}}
	attributes := &attributes{
		Attributes: admission.NewAttributesRecord(object(asked.Object), object(asked.OldObject),
			schema.GroupVersionKind(asked.Kind), asked.Namespace, asked.Name,
			schema.GroupVersionResource(asked.Resource), asked.Subresource,
			admission.Operation(asked.Operation), object(asked.Options), asked.DryRun, asked.User.info()),
		annotations: given.AuditAnnotations,
	}
	s.meter = meter{}
	matcher := matching.NewMatcher(corelisters.NewNamespaceLister(s.namespaces), noClient{})
	dispatcher := validating.NewDispatcher(s, generic.NewPolicyMatcher(matcher))
	ctx := warning.WithWarningRecorder(context.Background(), (*recorder)(&given.Warnings))
	hooks, err := s.hooks()
	if err != nil {
		given.Failed = err.Error()
		return given
	}
	err = dispatcher.Dispatch(ctx, attributes, asked.interfaces(), hooks)
	given.Spent = s.meter.spent
	if err == nil {
		return given
	}
	given.Denied = true
	var status *apierrors.StatusError
	if !errors.As(err, &status) {
		given.Failed = err.Error()
		return given
	}
	given.Code, given.Reason = status.ErrStatus.Code, string(status.ErrStatus.Reason)
	given.Message = status.ErrStatus.Message
	if status.ErrStatus.Details != nil {
		for _, cause := range status.ErrStatus.Details.Causes {
			given.Causes = append(given.Causes, cause.Message)
		}
	}
	return given
}

// object returns nil for nil content, also as an interface.
func object(content map[string]any) runtime.Object {
	if content == nil {
		return nil
	}
	return &unstructured.Unstructured{Object: content}
}

func (a *asker) info() user.Info {
	return &user.DefaultInfo{Name: a.Name, UID: a.UID, Groups: a.Groups, Extra: a.Extra}
}

// attributes records the audit annotations.
type attributes struct {
	admission.Attributes
	annotations map[string]string
}

func (a *attributes) AddAnnotation(key, value string) error {
	// The first value is kept, as in the audit event.
	if _, ok := a.annotations[key]; !ok {
		a.annotations[key] = value
	}
	return nil
}

// recorder records the warnings.
type recorder []string

func (r *recorder) AddWarning(_, text string) {
	*r = append(*r, text)
}

// interfaces returns what admission needs to convert objects of the kind. Its versions have the
// same schema.
func (r *request) interfaces() admission.ObjectInterfaces {
	equivalents := runtime.NewEquivalentResourceRegistryWithIdentity(func(resource schema.GroupResource) string {
		return resource.Resource
	})
	register := func(resource metav1.GroupVersionResource, kind metav1.GroupVersionKind) {
		equivalents.RegisterKindFor(schema.GroupVersionResource(resource), r.Subresource, schema.GroupVersionKind(kind))
	}
	register(r.Resource, r.Kind)
	for _, other := range r.Equivalents {
		register(other.Resource, other.Kind)
	}
	return &admission.RuntimeObjectInterfaces{
		ObjectCreater:            alike{},
		ObjectConvertor:          alike{},
		EquivalentResourceMapper: equivalents,
	}
}

// alike converts between versions that only differ in their names.
type alike struct {
	runtime.ObjectConvertor
}

func (alike) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	made := &unstructured.Unstructured{}
	made.SetGroupVersionKind(kind)
	return made, nil
}

func (alike) Convert(in, out, _ any) error {
	from, into := in.(*unstructured.Unstructured), out.(*unstructured.Unstructured)
	kind := into.GroupVersionKind()
	into.Object = from.DeepCopy().Object
	into.SetGroupVersionKind(kind)
	return nil
}

// Authorize allows the permissions of the question.
func (s *policyState) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	name := ""
	if a.GetUser() != nil {
		name = a.GetUser().GetName()
	}
	found := [][]string{{a.GetAPIGroup()}, {a.GetResource()}, {a.GetSubresource()}, {a.GetNamespace()}, {a.GetName()}}
	for _, one := range s.asked.Allowed {
		wanted := [][]string{{one.Group}, {one.Resource}, {one.Subresource}, {one.Namespace}, {one.Name}}
		if one.User != "*" && one.User != name || one.Verb != "*" && one.Verb != a.GetVerb() {
			continue
		}
		if !a.IsResourceRequest() {
			if one.Path == "*" || one.Path == a.GetPath() {
				return authorizer.DecisionAllow, "", nil
			}
			continue
		}
		same := func(wanted, found []string) bool { return wanted[0] == "*" || wanted[0] == found[0] }
		if one.Path == "" && slices.EqualFunc(wanted, found, same) {
			return authorizer.DecisionAllow, "", nil
		}
	}
	return authorizer.DecisionNoOpinion, "nobody allows it", nil
}

// noClient is used for namespaces that are not in the lister. They do not exist.
type noClient struct{ kubernetes.Interface }

func (noClient) CoreV1() typedcorev1.CoreV1Interface { return noCore{} }

type noCore struct{ typedcorev1.CoreV1Interface }

func (noCore) Namespaces() typedcorev1.NamespaceInterface { return noNamespaces{} }

type noNamespaces struct{ typedcorev1.NamespaceInterface }

func (noNamespaces) Get(_ context.Context, name string, _ metav1.GetOptions) (*corev1.Namespace, error) {
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, name)
}
