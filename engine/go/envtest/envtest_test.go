package envtest_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/finos/5-spot/engine/go/envtest"
)

// parent makes the test program start an environment, print where it is, and wait for its end.
const parent = "KUBEMU_ENVTEST_PARENT"

func TestMain(m *testing.M) {
	const program = "TEST_ASSET_KUBEMU"
	if os.Getenv(program) == "" {
		built, err := filepath.Abs("../../../target/debug/kubemu")
		if err == nil {
			err = os.Setenv(program, built)
		}
		if err != nil {
			panic(err)
		}
	}
	if os.Getenv(parent) == "" {
		os.Exit(m.Run())
	}
	config, err := (&envtest.Environment{}).Start()
	if err != nil {
		panic(err)
	}
	fmt.Println(config.Host)
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		panic(err)
	}
}

func started(t *testing.T, env *envtest.Environment) (*rest.Config, client.Client) {
	t.Helper()
	config, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	return config, clientOf(t, config)
}

func clientOf(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

func greeting(name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Greeting", "spec": spec,
		"metadata": map[string]any{"namespace": "default", "name": name},
	}}
}

// isListening is whether something answers at the address of a server.
func isListening(host string) bool {
	response, err := http.Get(host)
	if err == nil {
		_ = response.Body.Close()
		return true
	}
	// A certificate that is not trusted is an answer.
	return !strings.Contains(err.Error(), "connection refused")
}

func TestAServerAnswersAfterStartAndIsGoneAfterStop(t *testing.T) {
	env := &envtest.Environment{}
	config, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	if err := clientOf(t, config).Create(context.Background(), configMap("a")); err != nil {
		t.Error(err)
	}
	if len(config.CertData) == 0 || config.BearerToken != "" {
		t.Error("the administrator needs a certificate and no token")
	}
	fromFile, err := clientcmd.RESTConfigFromKubeConfig(env.KubeConfig)
	if err != nil {
		t.Fatal(err)
	}
	if err := clientOf(t, fromFile).Get(context.Background(), client.ObjectKeyFromObject(configMap("a")), configMap("a")); err != nil {
		t.Error(err)
	}
	if err := env.Stop(); err != nil {
		t.Error(err)
	}
	if isListening(config.Host) {
		t.Error("the server listens after Stop")
	}
}

func TestAnEnvironmentThatWasStoppedStartsAgainWithoutTheObjects(t *testing.T) {
	env := &envtest.Environment{}
	config, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	if err := clientOf(t, config).Create(context.Background(), configMap("a")); err != nil {
		t.Error(err)
	}
	if err := env.Stop(); err != nil {
		t.Fatal(err)
	}
	_, c := started(t, env)
	err = c.Get(context.Background(), client.ObjectKeyFromObject(configMap("a")), configMap("a"))
	if !apierrors.IsNotFound(err) {
		t.Errorf("an object of the server before: %v", err)
	}
}

func TestCRDsOfFoldersAndObjectsAreServedAfterStart(t *testing.T) {
	other := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "others.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com",
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "others", Kind: "Other"},
			Scope: apiextensionsv1.ClusterScoped,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{
					OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"},
				},
			}},
		},
	}
	env := &envtest.Environment{
		CRDDirectoryPaths:     []string{"testdata/crds"},
		CRDs:                  []*apiextensionsv1.CustomResourceDefinition{other},
		ErrorIfCRDPathMissing: true,
		CRDInstallOptions:     envtest.CRDInstallOptions{CleanUpAfterUse: true},
	}
	_, c := started(t, env)
	if len(env.CRDs) != 2 {
		t.Errorf("%d CRDs, not 2", len(env.CRDs))
	}
	if err := c.Create(context.Background(), greeting("a", map[string]any{"to": "somebody"})); err != nil {
		t.Error(err)
	}
	err := c.Create(context.Background(), greeting("b", map[string]any{}))
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.to: Required value") {
		t.Errorf("a greeting to nobody: %v", err)
	}
}

func TestAFolderOfCRDsThatDoesNotExistIsAnErrorIfItIsWanted(t *testing.T) {
	env := &envtest.Environment{CRDDirectoryPaths: []string{"testdata/absent"}, ErrorIfCRDPathMissing: true}
	_, err := env.Start()
	if err == nil || !strings.Contains(err.Error(), "testdata/absent") {
		t.Errorf("%v", err)
	}
	if err := env.Stop(); err != nil {
		t.Error(err)
	}
}

func TestAWebhookOfAFileIsCalledWithTheCertificatesOfTheEnvironment(t *testing.T) {
	env := &envtest.Environment{
		WebhookInstallOptions: envtest.WebhookInstallOptions{Paths: []string{"testdata/webhooks"}},
	}
	_, c := started(t, env)
	options := env.WebhookInstallOptions
	server := webhook.NewServer(webhook.Options{
		Host: options.LocalServingHost, Port: options.LocalServingPort, CertDir: options.LocalServingCertDir,
	})
	server.Register("/validate", &webhook.Admission{
		Handler: admission.HandlerFunc(func(_ context.Context, request admission.Request) admission.Response {
			if request.Name == "denied" {
				return admission.Denied("not this one")
			}
			return admission.Allowed("")
		}),
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Start(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	await(t, func() bool { return server.StartedChecker()(nil) == nil })
	if err := c.Create(ctx, configMap("allowed")); err != nil {
		t.Error(err)
	}
	err := c.Create(ctx, configMap("denied"))
	const refusal = `admission webhook "greetings.example.com" denied the request: not this one`
	if err == nil || err.Error() != refusal {
		t.Errorf("%v", err)
	}
}

func TestANamespaceHasNothingThatAControllerCreates(t *testing.T) {
	_, c := started(t, &envtest.Environment{})
	if volumes := volumesOfAPod(t, c); volumes != 0 {
		t.Errorf("%d volumes of a pod", volumes)
	}
	accounts := &corev1.ServiceAccountList{}
	if err := c.List(context.Background(), accounts); err != nil || len(accounts.Items) != 0 {
		t.Errorf("%v %v", accounts.Items, err)
	}
	maps := &corev1.ConfigMapList{}
	if err := c.List(context.Background(), maps); err != nil || len(maps.Items) != 0 {
		t.Errorf("%v %v", maps.Items, err)
	}
}

func TestWhatAControllerCreatesCanBeHad(t *testing.T) {
	env := &envtest.Environment{}
	env.ControlPlane.GetAPIServer().Configure().
		Set("bare-namespaces", "false").
		Set("disable-admission-plugins")
	_, c := started(t, env)
	if volumes := volumesOfAPod(t, c); volumes != 1 {
		t.Errorf("%d volumes of a pod, not that of its token", volumes)
	}
}

// volumesOfAPod creates a namespace with a pod, and returns how many volumes the pod has.
func volumesOfAPod(t *testing.T, c client.Client) int {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "c"}}},
	}
	for _, object := range []client.Object{namespace, pod} {
		if err := c.Create(context.Background(), object); err != nil {
			t.Fatal(err)
		}
	}
	return len(pod.Spec.Volumes)
}

func TestAUserHasOnlyTheRightsOfItsGroups(t *testing.T) {
	env := &envtest.Environment{}
	started(t, env)
	user, err := env.AddUser(envtest.User{Name: "jane", Groups: []string{"readers"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = clientOf(t, user.Config()).Create(context.Background(), configMap("a"))
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `User "jane" cannot create`) {
		t.Errorf("without rights: %v", err)
	}
	master, err := env.AddUser(envtest.User{Name: "joe", Groups: []string{"system:masters"}}, &rest.Config{QPS: 7})
	if err != nil {
		t.Fatal(err)
	}
	if master.Config().QPS != 7 {
		t.Error("the settings of the configuration that was given")
	}
	text, err := master.KubeConfig()
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := clientOf(t, config).Create(context.Background(), configMap("a")); err != nil {
		t.Error(err)
	}
}

func TestFlagsReachTheServer(t *testing.T) {
	env := &envtest.Environment{DownloadBinaryAssetsVersion: "v1.35.2"}
	env.ControlPlane.GetAPIServer().Configure().Append("enable-admission-plugins", "AlwaysDeny")
	config, c := started(t, env)
	err := c.Create(context.Background(), configMap("a"))
	if !apierrors.IsForbidden(err) {
		t.Errorf("with AlwaysDeny: %v", err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Get(config.Host + "/version")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var version struct{ Minor string }
	if err := json.NewDecoder(response.Body).Decode(&version); err != nil || version.Minor != "35" {
		t.Errorf("%v %v", version, err)
	}
}

func TestAFlagThatTheServerDoesNotHaveIsInTheError(t *testing.T) {
	env := &envtest.Environment{}
	env.ControlPlane.GetAPIServer().Configure().Set("etcd-servers", "http://127.0.0.1:1")
	_, err := env.Start()
	if err == nil || !strings.Contains(err.Error(), "--etcd-servers") {
		t.Errorf("%v", err)
	}
	if err := env.Stop(); err != nil {
		t.Error(err)
	}
}

func TestWithoutTheProgramTheErrorSaysHowToInstallIt(t *testing.T) {
	t.Setenv("TEST_ASSET_KUBEMU", "")
	t.Setenv("PATH", t.TempDir())
	_, err := (&envtest.Environment{BinaryAssetsDirectory: t.TempDir()}).Start()
	if err == nil || !strings.Contains(err.Error(), "cargo install") {
		t.Errorf("%v", err)
	}
}

func TestAProgramThatDoesNotGetReadyIsEndedAfterTheTimeout(t *testing.T) {
	sleeps := filepath.Join(t.TempDir(), "kubemu")
	if err := os.WriteFile(sleeps, []byte("#!/bin/sh\necho waiting >&2\nexec sleep 600\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	env := &envtest.Environment{ControlPlaneStartTimeout: 300 * time.Millisecond}
	env.ControlPlane.GetAPIServer().Path = sleeps
	_, err := env.Start()
	if err == nil || !strings.Contains(err.Error(), "was not ready within 300ms") {
		t.Errorf("%v", err)
	}
}

func TestAnExistingClusterIsUsedAndNotStopped(t *testing.T) {
	config, c := started(t, &envtest.Environment{})
	exists := true
	other := &envtest.Environment{
		UseExistingCluster: &exists, Config: config, CRDDirectoryPaths: []string{"testdata/crds"},
	}
	if _, err := other.Start(); err != nil {
		t.Fatal(err)
	}
	if err := other.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(context.Background(), greeting("a", map[string]any{"to": "a"})); err != nil {
		t.Error(err)
	}
}

func TestAServerDoesNotOutliveTheProgramThatStartedIt(t *testing.T) {
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), parent+"=1")
	command.Stderr = os.Stderr
	if _, err := command.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	host, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	host = strings.TrimSpace(host)
	if !isListening(host) {
		t.Fatalf("%s does not listen", host)
	}
	if err := command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	// The error is that it was killed.
	_ = command.Wait()
	await(t, func() bool { return !isListening(host) })
}

func TestWhatTheServerPrintsIsPassedOn(t *testing.T) {
	var out bytes.Buffer
	env := &envtest.Environment{}
	env.ControlPlane.GetAPIServer().Out = &out
	if _, err := env.Start(); err != nil {
		t.Fatal(err)
	}
	if err := env.Stop(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(out.String(), "API server at https://") {
		t.Errorf("%q", out.String())
	}
}

// await waits for what happens in another process within ten seconds.
func await(t *testing.T, is func() bool) {
	t.Helper()
	end := time.After(10 * time.Second)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatal("it has not happened")
		}
	}
}
