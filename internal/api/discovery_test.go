// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/wherryproject/wherry/internal/api"
)

// Discovery, plain and aggregated, tells every resource with its verbs and short names.
func TestDiscovery(t *testing.T) {
	c := client(t)
	_, lists, err := c.Discovery().ServerGroupsAndResources() // aggregated
	if err != nil {
		t.Fatal(err)
	}
	aggregated := resourcesOf(lists)
	for _, want := range []string{
		"v1/bindings:-", "v1/namespaces:ns", "v1/namespaces/finalize", "v1/namespaces/status", "v1/nodes:no",
		"v1/nodes/status", "v1/nodes/proxy", "v1/pods:po", "v1/pods/status", "v1/pods/binding", "v1/pods/eviction",
		"v1/pods/log", "v1/pods/exec", "v1/pods/attach", "v1/pods/portforward", "v1/pods/proxy", "v1/events:ev",
		"v1/podtemplates", "v1/componentstatuses:cs", "v1/configmaps:cm", "v1/secrets", "v1/serviceaccounts:sa",
		"v1/serviceaccounts/token", "v1/services:svc", "v1/services/status", "v1/services/proxy", "v1/endpoints:ep",
		"v1/limitranges:limits", "v1/resourcequotas:quota", "v1/resourcequotas/status", "events.k8s.io/v1/events:ev",
		"discovery.k8s.io/v1/endpointslices", "coordination.k8s.io/v1/leases", "v1/pods/debug",
		"debug.wherry.dev/v1/debugruns", "debug.wherry.dev/v1/debugruns/status",
		"scheduling.k8s.io/v1/priorityclasses:pc", "node.k8s.io/v1/runtimeclasses",
		"policy.wherry.dev/v1/imagepolicies:imgpol", "batch/v1/jobs", "batch/v1/jobs/status", "batch/v1/cronjobs:cj",
		"batch/v1/cronjobs/status", "v1/replicationcontrollers:rc", "v1/replicationcontrollers/status",
		"v1/replicationcontrollers/scale",
	} {
		if missing, ok := strings.CutSuffix(want, ":-"); ok {
			if slices.Contains(aggregated, missing) {
				t.Errorf("%s is served", missing)
			}
			continue
		}
		name, short, _ := strings.Cut(want, ":")
		if !slices.Contains(aggregated, name+":"+short) {
			t.Errorf("%s is missing, or has other short names", want)
		}
	}
	// The plain documents must say the same.
	_, lists, err = c.Discovery().WithLegacy().ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	// Definitions of other tests come and go.
	custom := func(r string) bool { return strings.Contains(r, ".example.com/") }
	plain := slices.DeleteFunc(resourcesOf(lists), custom)
	aggregated = slices.DeleteFunc(aggregated, custom)
	slices.Sort(plain)
	slices.Sort(aggregated)
	if fmt.Sprint(plain) != fmt.Sprint(aggregated) {
		t.Errorf("plain      %v\naggregated %v", plain, aggregated)
	}
}

func resourcesOf(lists []*metav1.APIResourceList) (all []string) {
	for _, l := range lists {
		for _, r := range l.APIResources {
			all = append(all, l.GroupVersion+"/"+r.Name+":"+strings.Join(r.ShortNames, ","))
		}
	}
	return all
}

// The OpenAPI documents describe every resource, with kinds clients can find and without the hub's versions.
func TestOpenAPI(t *testing.T) {
	c := client(t)
	v2, err := c.Discovery().OpenAPISchema()
	if err != nil {
		t.Fatal(err)
	}
	if len(v2.Paths.Path) < 60 || len(v2.Definitions.AdditionalProperties) < 200 {
		t.Errorf("v2 has %d paths and %d definitions", len(v2.Paths.Path), len(v2.Definitions.AdditionalProperties))
	}
	raw, err := c.Discovery().RESTClient().Get().AbsPath("/openapi/v2").SetHeader("Accept",
		"application/json").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(raw, []byte("__internal")) {
		t.Error("v2 shows internal versions")
	}
	for _, param := range []string{"ephemeralContainerName", "ephemeralContainerTTL", "writable"} {
		if !bytes.Contains(raw, []byte(`"name":"`+param+`"`)) {
			t.Errorf("v2 does not tell of parameter %s of pods/exec (DC-03, IX-01)", param)
		}
	}
	paths, err := c.Discovery().OpenAPIV3().Paths()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"api/v1", "apis/events.k8s.io/v1", "apis/discovery.k8s.io/v1",
		"apis/coordination.k8s.io/v1", "apis/debug.wherry.dev/v1", "version"} {
		p, ok := paths[path]
		if !ok {
			t.Errorf("v3 has no %s", path)
			continue
		}
		doc, err := p.Schema("application/json")
		if err != nil || bytes.Contains(doc, []byte("__internal")) || !json.Valid(doc) {
			t.Errorf("v3 %s: %v, %d bytes", path, err, len(doc))
		}
	}
}

func TestVersionAndHealth(t *testing.T) {
	c := client(t)
	v, err := c.Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if v.GitVersion != api.KubernetesVersion+"+wherry" || v.Major != "1" {
		t.Errorf("version %+v", v)
	}
	mod, err := os.ReadFile(filepath.Join("..", "..", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "k8s.io/apiserver v0" + strings.TrimPrefix(api.KubernetesVersion, "v1"); !strings.Contains(string(mod),
		want) {
		t.Errorf("go.mod does not have %q: KubernetesVersion is wrong", want)
	}
	for _, path := range []string{"/healthz", "/livez", "/readyz", "/readyz/etcd", "/readyz/poststarthook/bootstrap",
		"/metrics", "/api", "/apis"} {
		var code int
		if err := c.Discovery().RESTClient().Get().AbsPath(path).Do(t.Context()).StatusCode(&code).Error(); code != http.StatusOK {
			t.Errorf("%s: %d, %v", path, code, err)
		}
	}
}

// Health is told check by check, under the names that kube-apiserver's have too; a check can be asked for, or left out.
func TestHealthChecks(t *testing.T) {
	c := client(t).Discovery().RESTClient()
	ask := func(path string) string {
		t.Helper()
		text, err := c.Get().RequestURI(path).DoRaw(t.Context())
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		return string(text)
	}
	const hook = "poststarthook/"
	names := []string{"ping", "etcd", hook + "start-apiserver-admission-initializer", hook + "generic-apiserver-start-informers",
		hook + "start-apiextensions-informers", hook + "start-apiextensions-controllers", hook + "crd-informer-synced",
		hook + "bootstrap-controller", hook + "start-system-namespaces-controller", hook + "start-service-ip-repair-controllers",
		hook + "scheduling/bootstrap-system-priority-classes", hook + "start-cluster-authentication-info-controller",
		hook + "start-kube-aggregator-informers", hook + "apiservice-registration-controller",
		hook + "apiservice-status-local-available-controller", hook + "apiservice-status-remote-available-controller",
		hook + "kube-apiserver-autoregistration", "autoregister-completion", hook + "apiservice-openapi-controller",
		hook + "storage-readiness", hook + "rbac/bootstrap-roles", hook + "apiservice-discovery-controller"}
	for path, more := range map[string][]string{"healthz": nil, "livez": nil, "readyz": {"informer-sync", "shutdown"}} {
		text := ask("/" + path + "?verbose")
		for _, name := range append(names, more...) {
			if !strings.Contains(text, "[+]"+name+" ok\n") {
				t.Errorf("/%s?verbose has no %s:\n%s", path, name, text)
			}
		}
		if ready := path == "readyz"; strings.Contains(text, "]informer-sync ") != ready {
			t.Errorf("/%s?verbose has informer-sync: %t:\n%s", path, !ready, text)
		}
		if !strings.HasSuffix(text, path+" check passed\n") {
			t.Errorf("/%s?verbose ends %q", path, text[max(0, len(text)-40):])
		}
	}
	if text := ask("/readyz?verbose&exclude=etcd"); !strings.Contains(text, "[+]etcd excluded: ok\n") {
		t.Errorf("with etcd excluded:\n%s", text)
	}
	for _, path := range []string{"/healthz/ping", "/livez/etcd", "/readyz/autoregister-completion", "/livez/poststarthook/bootstrap-controller"} {
		if text := ask(path); text != "ok" {
			t.Errorf("%s: %q", path, text)
		}
	}
}

// fatal is what kubectl would have printed before it ended the process.
type fatal string

// kubectl runs k8s.io/kubectl in this process as the admin.
func kubectl(t *testing.T, manifest string, args ...string) (output string) {
	t.Helper()
	var out, errs bytes.Buffer
	cmdutil.BehaviorOnFatal(func(msg string, code int) {
		panic(fatal(fmt.Sprintf("kubectl %v: %s (exit code %d)", args, msg, code)))
	})
	defer cmdutil.DefaultBehaviorOnFatal()
	defer func() {
		if r := recover(); r != nil {
			f, ok := r.(fatal)
			if !ok {
				panic(r)
			}
			t.Fatal(f)
		}
	}()
	data, err := shared.srv.AdminKubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if manifest != "" {
		file := filepath.Join(dir, "manifest.yaml")
		if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "-f", file)
	}
	command := cmd.NewKubectlCommand(cmd.KubectlOptions{
		IOStreams:   genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errs},
		ConfigFlags: genericclioptions.NewConfigFlags(true),
		Arguments:   append([]string{"kubectl"}, args...),
	})
	command.SetArgs(append([]string{"--kubeconfig", file, "--cache-dir", dir}, args...))
	command.SetOut(&out)
	command.SetErr(&errs)
	if err := command.Execute(); err != nil {
		t.Fatalf("kubectl %v: %v\n%s", args, err, errs.String())
	}
	return out.String() + errs.String()
}

// The kubectl of the libraries' version explains, applies on the client's side, diffs by strategic merge, and prints
// tables.
func TestKubectl(t *testing.T) {
	if out := kubectl(t, "", "explain", "pod.spec.containers"); !strings.Contains(out,
		"FIELD: containers <[]Container>") || !strings.Contains(out, "imagePullPolicy") {
		t.Errorf("explain:\n%s", out)
	}
	if out := kubectl(t, "", "explain", "lease.spec.holderIdentity"); !strings.Contains(out, "holderIdentity") {
		t.Errorf("explain:\n%s", out)
	}
	ns := namespace(t, client(t))
	manifest := func(image string) string {
		return "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\nspec:\n  containers:\n  - name: web\n    image: " +
			image + "\n"
	}
	if out := kubectl(t, manifest("one"), "-n", ns, "apply"); !strings.Contains(out, "pod/web created") {
		t.Errorf("apply: %s", out)
	}
	if out := kubectl(t, manifest("one"), "-n", ns, "apply"); !strings.Contains(out, "pod/web unchanged") {
		t.Errorf("second apply: %s", out)
	}
	if out := kubectl(t, manifest("two"), "-n", ns, "apply"); !strings.Contains(out, "pod/web configured") {
		t.Errorf("third apply: %s", out)
	}
	if out := kubectl(t, manifest("two"), "-n", ns, "apply", "--server-side",
		"--force-conflicts"); !strings.Contains(out, "pod/web serverside-applied") {
		t.Errorf("server-side apply: %s", out)
	}
	if out := kubectl(t, "", "-n", ns, "get", "pods"); !strings.Contains(out, "READY") ||
		!strings.Contains(out, "0/1     Pending") {
		t.Errorf("get:\n%s", out)
	}
	if out := kubectl(t, "", "-n", ns, "get", "all"); !strings.Contains(out, "pod/web") {
		t.Errorf("get all:\n%s", out)
	}
	if out := kubectl(t, "", "-n", ns, "describe", "pod", "web"); !strings.Contains(out, "Service Account:  default") {
		t.Errorf("describe:\n%s", out)
	}
	if out := kubectl(t, "", "api-resources"); !strings.Contains(out, "endpointslices") {
		t.Errorf("api-resources:\n%s", out)
	}
	if out := kubectl(t, "", "-n", ns, "delete", "pod", "web", "--wait"); !strings.Contains(out, `pod "web" deleted`) {
		t.Errorf("delete: %s", out)
	}
}
