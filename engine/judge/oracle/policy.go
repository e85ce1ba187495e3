package main

import (
	"context"
	"encoding/json"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/admissionregistration"
	_ "k8s.io/kubernetes/pkg/apis/admissionregistration/install"
	"k8s.io/kubernetes/pkg/apis/admissionregistration/validation"
)

// decodeTyped reads a manifest into its external form and sets defaults.
func decodeTyped(text json.RawMessage, into runtime.Object) error {
	decoder := legacyscheme.Codecs.UniversalDeserializer()
	if _, _, err := decoder.Decode(text, nil, into); err != nil {
		return err
	}
	legacyscheme.Scheme.Default(into)
	return nil
}

// keepStored adds the policies that an older server has stored, valid or not.
func (s *policyState) keepStored(asked *question) error {
	for _, text := range asked.StoredPolicies {
		var policy admissionregistrationv1.ValidatingAdmissionPolicy
		if err := decodeTyped(text, &policy); err != nil {
			return err
		}
		s.policies = append(s.policies, &policy)
	}
	return nil
}

// addPolicy registers a policy, and keeps it if it is valid.
func (s *policyState) addPolicy(text json.RawMessage) registration {
	var external admissionregistrationv1.ValidatingAdmissionPolicy
	var internal admissionregistration.ValidatingAdmissionPolicy
	err := decodeTyped(text, &external)
	if err == nil {
		err = legacyscheme.Scheme.Convert(&external, &internal, nil)
	}
	if err != nil {
		return registration{Undecodable: err.Error(), Errors: []string{}}
	}
	errors := texts(validation.ValidateValidatingAdmissionPolicy(&internal))
	if len(errors) == 0 {
		s.policies = append(s.policies, &external)
	}
	return registration{Errors: errors}
}

// addBinding registers a binding, and keeps it if it is valid.
func (s *policyState) addBinding(text json.RawMessage) registration {
	var external admissionregistrationv1.ValidatingAdmissionPolicyBinding
	var internal admissionregistration.ValidatingAdmissionPolicyBinding
	err := decodeTyped(text, &external)
	if err == nil {
		err = legacyscheme.Scheme.Convert(&external, &internal, nil)
	}
	if err != nil {
		return registration{Undecodable: err.Error(), Errors: []string{}}
	}
	errors := texts(validation.ValidateValidatingAdmissionPolicyBinding(&internal))
	if len(errors) == 0 {
		s.bindings = append(s.bindings, &external)
	}
	return registration{Errors: errors}
}

// validator returns the compiled policy. It is compiled at the first call.
func (s *policyState) validator(policy *admissionregistrationv1.ValidatingAdmissionPolicy) validating.Validator {
	compiled, ok := s.compiled[policy]
	if !ok {
		compiled = compile(policy, &s.meter)
		s.compiled[policy] = compiled
	}
	return compiled
}

// compile compiles a policy like the plugin. The meter records the cost of each evaluation.
func compile(policy *admissionregistrationv1.ValidatingAdmissionPolicy, meter *meter) validating.Validator {
	spec := &policy.Spec
	hasParams := spec.ParamKind != nil
	all := cel.OptionalVariableDeclarations{HasParams: hasParams, HasAuthorizer: true}
	forMessages := cel.OptionalVariableDeclarations{HasParams: hasParams}
	base := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	compiler, err := cel.NewCompositedCompiler(base)
	if err != nil {
		return validating.NewValidator(nil, nil, nil, nil, spec.FailurePolicy, err)
	}
	var variables []cel.NamedExpressionAccessor
	for _, one := range spec.Variables {
		variables = append(variables, &validating.Variable{Name: one.Name, Expression: one.Expression})
	}
	compiler.CompileAndStoreVariables(variables, all, environment.StoredExpressions)
	condition := func(expressions []cel.ExpressionAccessor, may cel.OptionalVariableDeclarations) cel.ConditionEvaluator {
		compiled := compiler.CompileCondition(expressions, may, environment.StoredExpressions)
		return &metered{ConditionEvaluator: compiled, meter: meter}
	}
	var matcher matchconditions.Matcher
	if len(spec.MatchConditions) > 0 {
		var conditions []cel.ExpressionAccessor
		for i := range spec.MatchConditions {
			conditions = append(conditions, (*matchconditions.MatchCondition)(&spec.MatchConditions[i]))
		}
		matcher = matchconditions.NewMatcher(condition(conditions, all), spec.FailurePolicy, "policy", "validate", policy.Name)
	}
	validations := make([]cel.ExpressionAccessor, len(spec.Validations))
	messages := make([]cel.ExpressionAccessor, len(spec.Validations))
	for i, one := range spec.Validations {
		validations[i] = &validating.ValidationCondition{Expression: one.Expression, Message: one.Message, Reason: one.Reason}
		if one.MessageExpression != "" {
			messages[i] = &validating.MessageExpressionCondition{MessageExpression: one.MessageExpression}
		}
	}
	annotations := make([]cel.ExpressionAccessor, len(spec.AuditAnnotations))
	for i, one := range spec.AuditAnnotations {
		annotations[i] = &validating.AuditAnnotationCondition{Key: one.Key, ValueExpression: one.ValueExpression}
	}
	inner := validating.NewValidator(condition(validations, all), matcher, condition(annotations, all),
		condition(messages, forMessages), spec.FailurePolicy, nil)
	return &meteredValidator{Validator: inner, policy: policy.Name, meter: meter}
}

// meter records the costs of evaluations.
type meter struct {
	spent []spent
}

// metered adds the cost of its expressions to a meter.
type metered struct {
	cel.ConditionEvaluator
	meter *meter
}

func (m *metered) ForInput(ctx context.Context, attributes *admission.VersionedAttributes,
	request *admissionv1.AdmissionRequest, bindings cel.OptionalVariableBindings,
	namespace *corev1.Namespace, budget int64,
) ([]cel.EvaluationResult, int64, error) {
	results, left, err := m.ConditionEvaluator.ForInput(ctx, attributes, request, bindings, namespace, budget)
	if last := len(m.meter.spent) - 1; last >= 0 {
		if left < 0 {
			left = 0
		}
		m.meter.spent[last].Cost += budget - left
	}
	return results, left, err
}

// meteredValidator adds an entry to the meter for each evaluation.
type meteredValidator struct {
	validating.Validator
	policy string
	meter  *meter
}

func (m *meteredValidator) Validate(ctx context.Context, matched schema.GroupVersionResource,
	attributes *admission.VersionedAttributes, params runtime.Object, namespace *corev1.Namespace,
	budget int64, authorizer authorizer.Authorizer,
) validating.ValidateResult {
	m.meter.spent = append(m.meter.spent, spent{Policy: m.policy})
	return m.Validator.Validate(ctx, matched, attributes, params, namespace, budget, authorizer)
}
