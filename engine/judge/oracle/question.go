package main

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// question is one line of input. All fields are optional.
type question struct {
	// Definition is a CustomResourceDefinition to register.
	Definition json.RawMessage `json:"definition"`
	// OldDefinition is the registered one that Definition replaces.
	OldDefinition json.RawMessage `json:"oldDefinition"`
	// Writes are writes of objects of the definition's kind. They require that it can be registered.
	Writes []write `json:"writes"`
	// Policies are ValidatingAdmissionPolicies to register.
	Policies []json.RawMessage `json:"policies"`
	// StoredPolicies are policies that an older server has stored. They are not validated.
	StoredPolicies []json.RawMessage `json:"storedPolicies"`
	// Bindings are ValidatingAdmissionPolicyBindings to register.
	Bindings []json.RawMessage `json:"bindings"`
	// TypeCheck requests the warnings of the policies against the definition.
	TypeCheck bool `json:"typeCheck"`
	// Params are parameter objects. Those with a namespace are of a namespaced kind.
	Params []unstructured.Unstructured `json:"params"`
	// Namespaces are the existing Namespace objects.
	Namespaces []json.RawMessage `json:"namespaces"`
	// Allowed are the permissions of the authorizer.
	Allowed []permission `json:"allowed"`
	// Requests are evaluated by the policies that could be registered.
	Requests []request `json:"requests"`
	// Mutations each have a policy and an object of their own.
	Mutations []mutation `json:"mutations"`
}

// write is a write of an object.
type write struct {
	// Operation is CREATE, UPDATE or STATUS.
	Operation string `json:"operation"`
	// Object is the object as the client sent it.
	Object content `json:"object"`
	// OldObject is the stored object.
	OldObject content `json:"oldObject"`
}

// content is that of an object, with numbers decoded as in the server.
type content map[string]any

func (c *content) UnmarshalJSON(text []byte) error {
	return utiljson.Unmarshal(text, (*map[string]any)(c))
}

// request is the input of an admission policy.
type request struct {
	Operation   string                      `json:"operation"`
	Kind        metav1.GroupVersionKind     `json:"kind"`
	Resource    metav1.GroupVersionResource `json:"resource"`
	Subresource string                      `json:"subresource"`
	Namespace   string                      `json:"namespace"`
	Name        string                      `json:"name"`
	Object      content                     `json:"object"`
	OldObject   content                     `json:"oldObject"`
	Options     content                     `json:"options"`
	DryRun      bool                        `json:"dryRun"`
	User        asker                       `json:"user"`
	// Equivalents are the other versions in which the resource is served.
	Equivalents []equivalent `json:"equivalents"`
}

// equivalent is another version of a resource.
type equivalent struct {
	Kind     metav1.GroupVersionKind     `json:"kind"`
	Resource metav1.GroupVersionResource `json:"resource"`
}

// asker is the user of a request.
type asker struct {
	Name   string              `json:"name"`
	UID    string              `json:"uid"`
	Groups []string            `json:"groups"`
	Extra  map[string][]string `json:"extra"`
}

// permission is one permission of the authorizer. An empty field matches an empty one in the
// attributes, and a star matches any value.
type permission struct {
	User        string `json:"user"`
	Verb        string `json:"verb"`
	Group       string `json:"group"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource"`
	Namespace   string `json:"namespace"`
	Name        string `json:"name"`
	Path        string `json:"path"`
}

// answer is one line of output. Lists are in the order of the question.
type answer struct {
	// Malformed is the error if the line is not a question.
	Malformed string `json:"malformed,omitempty"`
	// Unanswered is the reason if there is no answer. It is then the last one.
	Unanswered string `json:"unanswered,omitempty"`
	// Panic is the stack of a panic in the libraries.
	Panic string `json:"panic,omitempty"`
	// Definition is the result of registering the definition.
	Definition *registration `json:"definition,omitempty"`
	// Costs are the estimates of the definition's expressions.
	Costs []ruleCost `json:"costs,omitempty"`
	// Writes is absent if the definition cannot be registered.
	Writes   []written      `json:"writes,omitempty"`
	Policies []registration `json:"policies,omitempty"`
	Bindings []registration `json:"bindings,omitempty"`
	// TypeChecks has one entry for each policy.
	TypeChecks [][]typeWarning `json:"typeChecks,omitempty"`
	Decisions  []decision      `json:"decisions,omitempty"`
	Mutated    []mutated       `json:"mutated,omitempty"`
}

// registration is the server's response to a definition or a policy.
type registration struct {
	// Undecodable is the error if it cannot be decoded as its kind.
	Undecodable string `json:"undecodable,omitempty"`
	// Errors is empty if it is accepted.
	Errors []string `json:"errors"`
}

// ruleCost is the estimate of one expression of a definition.
type ruleCost struct {
	Path  string `json:"path"`
	Once  uint64 `json:"once"`
	Total uint64 `json:"total"`
}

// written is the server's response to a write.
type written struct {
	// Undecodable is the error if the object could not be decoded.
	Undecodable string `json:"undecodable,omitempty"`
	// Unknown are the paths of fields that were pruned.
	Unknown []string `json:"unknown"`
	// Object is the pruned object, with defaults.
	Object   map[string]any `json:"object"`
	Errors   []string       `json:"errors"`
	Warnings []string       `json:"warnings"`
	// Cost is the cost of the rules. It is absent if they were not run.
	Cost *int64 `json:"cost,omitempty"`
}

// typeWarning is an entry of status.typeChecking.expressionWarnings.
type typeWarning struct {
	Field   string `json:"field"`
	Warning string `json:"warning"`
}

// decision is the policies' decision about a request.
type decision struct {
	// Failed is the reason if no decision was made.
	Failed           string            `json:"failed,omitempty"`
	Denied           bool              `json:"denied"`
	Code             int32             `json:"code,omitempty"`
	Reason           string            `json:"reason,omitempty"`
	Message          string            `json:"message,omitempty"`
	Causes           []string          `json:"causes,omitempty"`
	Warnings         []string          `json:"warnings"`
	AuditAnnotations map[string]string `json:"auditAnnotations"`
	// Spent has the cost of each evaluation of a policy's validations and messages, in order.
	Spent []spent `json:"spent"`
}

// spent is the cost of one evaluation.
type spent struct {
	Policy string `json:"policy"`
	Cost   int64  `json:"cost"`
}

// answer computes the answer with the libraries.
func (asked *question) answer() answer {
	var given answer
	var registered *definition
	if asked.Definition != nil {
		registered, given.Definition = register(asked.Definition, asked.OldDefinition)
	}
	if registered != nil {
		given.Costs = registered.costs()
		if len(given.Definition.Errors) == 0 {
			for _, write := range asked.Writes {
				given.Writes = append(given.Writes, registered.write(write))
			}
		}
	}
	state := newPolicyState(asked)
	if err := state.keepStored(asked); err != nil {
		return answer{Malformed: err.Error()}
	}
	for _, text := range asked.Policies {
		given.Policies = append(given.Policies, state.addPolicy(text))
	}
	for _, text := range asked.Bindings {
		given.Bindings = append(given.Bindings, state.addBinding(text))
	}
	if asked.TypeCheck && registered != nil {
		given.TypeChecks = state.typeChecks(registered)
	}
	for _, request := range asked.Requests {
		given.Decisions = append(given.Decisions, state.decide(request))
	}
	for _, mutation := range asked.Mutations {
		given.Mutated = append(given.Mutated, mutation.apply())
	}
	return given
}

// texts formats errors like the server.
func texts(errors field.ErrorList) []string {
	printed := make([]string, 0, len(errors))
	for _, err := range errors {
		printed = append(printed, err.Error())
	}
	return printed
}
