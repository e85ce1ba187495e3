package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/google/cel-go/cel"
	"golang.org/x/sys/unix"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/generic"
	"k8s.io/apiserver/pkg/admission/plugin/policy/matching"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
	corelisters "k8s.io/client-go/listers/core/v1"
)

const (
	// minSample is how long the measured loop of a sample takes at least. The garbage of earlier
	// calls is collected in it.
	minSample = 10 * time.Millisecond
	samples   = 30
	warmUp    = 200 * time.Millisecond
)

// speedQuestion has the manifests and the objects to measure with. The manifests are texts, which
// reading them is measured with.
type speedQuestion struct {
	Definition string             `json:"definition"`
	Policies   map[string]string  `json:"policies"`
	Binding    json.RawMessage    `json:"binding"`
	Objects    map[string]content `json:"objects"`
}

// measured are times in nanoseconds, and costs in units of the cost limits.
type measured struct {
	Times map[string]float64 `json:"times"`
	Costs map[string]int64   `json:"costs"`
}

func newMeasured() measured {
	return measured{Times: map[string]float64{}, Costs: map[string]int64{}}
}

// speed measures what crates/admission/benches/speed.rs measures, and the policies' expressions with
// cel-go alone, and prints the results.
func speed(in io.Reader, out io.Writer) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("%v", cause)
		}
	}()
	var asked speedQuestion
	if err := json.NewDecoder(in).Decode(&asked); err != nil {
		return err
	}
	found, alone := newMeasured(), newMeasured()
	found.Times["register definition"] = measure(nothing, func(any) { asked.define() })
	definition := asked.define()
	for name, text := range asked.Policies {
		found.Times["register "+name] = measure(nothing, func(any) { registered(text) })
		policy := registered(text)
		found.Times["compile "+name] = measure(nothing, func(any) { compile(policy, &meter{}) })
		alone.Times["compile "+name] = measure(nothing, func(any) { programs(policy) })
	}
	for objectName, object := range asked.Objects {
		version := must(definition.version(definition.external.Spec.Versions[0].Name))
		fresh := func() *unstructured.Unstructured {
			return &unstructured.Unstructured{Object: runtime.DeepCopyJSON(object)}
		}
		decoded := fresh()
		found.Times[objectName+" definition"] = measure(fresh, func(it *unstructured.Unstructured) {
			definition.create(version, it)
		})
		definition.create(version, decoded)
		found.Costs[objectName+" definition"] = *version.cost(decoded, nil)
		for policyName, text := range asked.Policies {
			name := objectName + " " + policyName
			policy := registered(text)
			decide, spent := asked.decider(policy)
			decide(decoded)
			found.Costs[name] = spent()
			copied := func() *unstructured.Unstructured { return decoded.DeepCopy() }
			found.Times[name] = measure(copied, decide)
			compiled := programs(policy)
			alone.Costs[name] = evaluate(compiled, decoded)
			alone.Times[name] = measure(copied, func(it *unstructured.Unstructured) { evaluate(compiled, it) })
		}
	}
	return json.NewEncoder(out).Encode(struct {
		measured
		CelGo measured `json:"celGo"`
	}{found, alone})
}

// processorTime is the time that all threads of this process have run on a processor, also those
// that collect garbage.
func processorTime() time.Duration {
	var spec unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &spec); err != nil {
		panic(err)
	}
	return time.Duration(spec.Nano())
}

func nothing() any { return nil }

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// measure returns the median time of run in nanoseconds, with an input of its own each time.
func measure[T any](input func() T, run func(T)) float64 {
	sample := func(times int) time.Duration {
		inputs := make([]T, times)
		for i := range inputs {
			inputs[i] = input()
		}
		begun := processorTime()
		for _, it := range inputs {
			run(it)
		}
		return processorTime() - begun
	}
	times := 1
	for begun := processorTime(); processorTime()-begun < warmUp || sample(times) < minSample; {
		if sample(times) < minSample {
			times *= 2
		}
	}
	each := make([]float64, samples)
	for i := range each {
		each[i] = float64(sample(times).Nanoseconds()) / float64(times)
	}
	slices.Sort(each)
	return each[samples/2]
}

// define registers the definition and compiles its rules, as at its creation and the first write.
func (q *speedQuestion) define() *definition {
	made, given := register([]byte(q.Definition), nil)
	if made == nil || len(given.Errors) > 0 {
		panic(fmt.Sprint("the definition is not valid: ", given))
	}
	for _, version := range made.external.Spec.Versions {
		must(made.version(version.Name))
	}
	return made
}

// registered reads and validates a policy, as at its creation.
func registered(text string) *admissionregistrationv1.ValidatingAdmissionPolicy {
	var state policyState
	if given := state.addPolicy([]byte(text)); len(state.policies) == 0 {
		panic(fmt.Sprint("the policy is not valid: ", given))
	}
	return state.policies[0]
}

// create decodes and validates a new object.
func (d *definition) create(version *version, object *unstructured.Unstructured) {
	unknown := must(d.decode(object, version.structural))
	if errors := version.main.Validate(context.Background(), object); len(unknown)+len(errors) > 0 {
		panic(fmt.Sprint("the object is not valid: ", unknown, errors))
	}
}

// decider returns the policy's decision about new objects, and the cost of the last one.
func (q *speedQuestion) decider(policy *admissionregistrationv1.ValidatingAdmissionPolicy) (func(*unstructured.Unstructured), func() int64) {
	var namespace corev1.Namespace
	namespace.Name = "default"
	encoded := must(json.Marshal(namespace))
	state := newPolicyState(&question{Namespaces: []json.RawMessage{encoded}})
	state.policies = append(state.policies, policy)
	if given := state.addBinding(q.Binding); len(state.bindings) == 0 {
		panic(fmt.Sprint("the binding is not valid: ", given))
	}
	matcher := matching.NewMatcher(corelisters.NewNamespaceLister(state.namespaces), noClient{})
	dispatcher := validating.NewDispatcher(state, generic.NewPolicyMatcher(matcher))
	hooks := must(state.hooks())
	var interfaces admission.ObjectInterfaces
	var user asker
	decide := func(object *unstructured.Unstructured) {
		kind := object.GroupVersionKind()
		resource := kind.GroupVersion().WithResource("scheduledmachines")
		if interfaces == nil {
			request := request{Kind: metav1.GroupVersionKind(kind), Resource: metav1.GroupVersionResource(resource)}
			interfaces = request.interfaces()
		}
		attributes := admission.NewAttributesRecord(object, nil, kind, object.GetNamespace(), object.GetName(),
			resource, "", admission.Create, nil, false, user.info())
		state.meter.spent = state.meter.spent[:0]
		if err := dispatcher.Dispatch(context.Background(), attributes, interfaces, hooks); err != nil {
			panic(err)
		}
	}
	return decide, func() int64 {
		var sum int64
		for _, one := range state.meter.spent {
			sum += one.Cost
		}
		return sum
	}
}

// programs compiles the conditions and the validations of a policy with cel-go, in Kubernetes'
// dialect and with the cost of each evaluation.
func programs(policy *admissionregistrationv1.ValidatingAdmissionPolicy) []cel.Program {
	base := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	env := must(must(base.Env(environment.StoredExpressions)).Extend(
		cel.Variable("object", cel.DynType), cel.Variable("oldObject", cel.DynType)))
	var compiled []cel.Program
	add := func(expression string) {
		ast, issues := env.Compile(expression)
		if issues.Err() != nil {
			panic(issues.Err())
		}
		compiled = append(compiled, must(env.Program(ast, cel.EvalOptions(cel.OptOptimize, cel.OptTrackCost),
			cel.CostTracking(&library.CostEstimator{}))))
	}
	for _, one := range policy.Spec.MatchConditions {
		add(one.Expression)
	}
	for _, one := range policy.Spec.Validations {
		add(strings.TrimSpace(one.Expression))
	}
	return compiled
}

// evaluate runs all programs about a new object and returns their cost.
func evaluate(compiled []cel.Program, object *unstructured.Unstructured) int64 {
	var cost int64
	variables := map[string]any{"object": object.Object, "oldObject": nil}
	for _, program := range compiled {
		value, details, err := program.Eval(variables)
		if err != nil || value.Value() != true {
			panic(fmt.Sprint("an expression does not hold: ", value, err))
		}
		cost += int64(*details.ActualCost())
	}
	return cost
}
