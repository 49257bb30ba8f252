// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/rest"

	"github.com/wherryproject/wherry/internal/api"
	"github.com/wherryproject/wherry/internal/api/admission"
	"github.com/wherryproject/wherry/internal/api/imagepolicy"
)

// warnings collects what a server tells its clients besides its answers.
type warnings struct {
	mu   sync.Mutex
	said []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = append(w.said, text)
}

// take returns what was said since the last call.
func (w *warnings) take() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	said := strings.Join(w.said, "\n")
	w.said = nil
	return said
}

func hearing(config *rest.Config) (*rest.Config, *warnings) {
	w := &warnings{}
	config.WarningHandler = w
	return config, w
}

// TestPodSecurity proves EC-21: labels of namespaces are checked, clients are warned, of pods that are there too.
// ATTACK A20.
func TestPodSecurity(t *testing.T) {
	config, heard := hearing(adminConfig(t))
	c := clientOf(t, config)
	w := world{c: c, ns: namespace(t, c)}
	root := func(name string) *corev1.Pod {
		p := pod(name)
		p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
		return p
	}
	createPod(t, c, w.ns, root("old"))
	t.Run("a label that means nothing", func(t *testing.T) {
		for _, change := range []string{`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"strict"}}}`,
			`{"metadata":{"labels":{"pod-security.kubernetes.io/warn-version":"soon"}}}`} {
			_, err := c.CoreV1().Namespaces().Patch(t.Context(), w.ns, "application/merge-patch+json", []byte(change),
				metav1.PatchOptions{})
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(),
				"metadata.labels[pod-security.kubernetes.io/") {
				t.Errorf("%v", err)
			}
		}
		bad := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.ns + "-x",
			Labels: map[string]string{"pod-security.kubernetes.io/audit": "none"}}}
		if _, err := c.CoreV1().Namespaces().Create(t.Context(), bad,
			metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
			t.Errorf("a new namespace: %v", err)
		}
	})
	t.Run("warn", func(t *testing.T) {
		w.label(t, map[string]string{"pod-security.kubernetes.io/warn": "baseline",
			"pod-security.kubernetes.io/audit": "restricted"})
		heard.take()
		createPod(t, c, w.ns, root("warned"))
		if said := heard.take(); !strings.Contains(said, `would violate PodSecurity "baseline:latest": privileged`) {
			t.Errorf("warned of %q", said)
		}
	})
	t.Run("pods that are there are told of, and stay", func(t *testing.T) {
		w.label(t, map[string]string{"pod-security.kubernetes.io/enforce": "baseline"})
		if said := heard.take(); !strings.Contains(said, `existing pods in namespace "`+w.ns+
			`" violate the new PodSecurity enforce level "baseline:latest"`) ||
			!strings.Contains(said, "old (and 1 other pod): privileged") {
			t.Errorf("warned of %q", said)
		}
		p := podNow(t, c, w.ns, "old")
		p.Labels = map[string]string{"still": "changes"}
		if _, err := c.CoreV1().Pods(w.ns).Update(t.Context(), p, metav1.UpdateOptions{}); err != nil {
			t.Errorf("its labels: %v", err)
		}
	})
	t.Run("enforce, of applied pods too", func(t *testing.T) {
		made := applycorev1.Pod("applied", w.ns).WithSpec(applycorev1.PodSpec().WithHostNetwork(true).
			WithContainers(applycorev1.Container().WithName("main").WithImage("registry.example/app:1")))
		_, err := c.CoreV1().Pods(w.ns).Apply(t.Context(), made, metav1.ApplyOptions{FieldManager: "test"})
		refusedFor(t, err,
			`pods "applied" is forbidden: violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)`)
		named := root("")
		named.GenerateName = "many-"
		_, err = c.CoreV1().Pods(w.ns).Create(t.Context(), named, metav1.CreateOptions{})
		refusedFor(t, err, "privileged (container")
	})
	t.Run("a debug container whose name is used again is judged again", func(t *testing.T) {
		n := newDebugNode(t)
		p := n.pod(t, w.ns, pod("again"))
		ask := "stdout=true&ephemeralContainerName=debug&ephemeralContainerImage=tools:1&ephemeralContainerProfile="
		_, err := execInto(t, adminConfig(t), "websocket", w.ns, "again", ask)
		if s := statusOf(t, err); s.Code != 403 || !strings.Contains(s.Message,
			"non-default capabilities (container \"debug\"") {
			t.Errorf("the default profile: %+v", s)
		}
		if _, err := execInto(t, adminConfig(t), "websocket", w.ns, "again", ask+"baseline"); err != nil {
			t.Fatal(err)
		}
		end(t, n, p, "debug", 0, 0)
		_, err = execInto(t, adminConfig(t), "websocket", w.ns, "again", ask+"sysadmin")
		if s := statusOf(t, err); s.Code != 403 || !strings.Contains(s.Message, "privileged (container \"debug\"") {
			t.Errorf("%+v", s)
		}
	})
}

// TestAdmissionConfig proves EC-21: defaults and exemptions of Pod Security, policies for images that nobody can
// change, and how long pods tolerate an absent node, as a server is told when it starts.
func TestAdmissionConfig(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("images.yaml",
		`{apiVersion: policy.wherry.dev/v1, kind: ImagePolicyList, items: [{metadata: {name: fixed}, spec: {deny: ["evil:*"]}}]}`)
	file := write("admission.yaml", `
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: PodSecurity
  configuration:
    apiVersion: pod-security.admission.config.k8s.io/v1
    kind: PodSecurityConfiguration
    defaults: {enforce: baseline, enforce-version: latest}
    exemptions: {namespaces: [tools], runtimeClasses: [boxed]}
- name: ImagePolicy
  path: images.yaml
`)
	config := api.Config{DataDir: t.TempDir(), BindAddress: "127.0.0.1", EtcdServers: []string{shared.etcd.Endpoint()},
		EtcdPrefix: "/admission-config", Admission: admission.Options{ConfigFile: file,
			NotReady: new(7 * time.Second), Unreachable: new(time.Duration(0))}}
	s, stop := serve(t, config)
	defer stop()
	c := clientOf(t, configOf(t, s))
	ns := namespace(t, c)
	hosts := func(name string) *corev1.Pod {
		p := pod(name)
		p.Spec.HostPID = true
		return p
	}
	t.Run("a namespace without labels has the defaults", func(t *testing.T) {
		_, err := c.CoreV1().Pods(ns).Create(t.Context(), hosts("a"), metav1.CreateOptions{})
		refusedFor(t, err, `violates PodSecurity "baseline:latest": host namespaces (hostPID=true)`)
	})
	t.Run("exempt", func(t *testing.T) {
		if _, err := c.CoreV1().Namespaces().Create(t.Context(),
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "tools"}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.CoreV1().ServiceAccounts("tools").Create(t.Context(),
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}},
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		createPod(t, c, "tools", hosts("a"))
		if _, err := c.NodeV1().RuntimeClasses().Create(t.Context(),
			&nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "boxed"}, Handler: "runsc"},
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		p := hosts("boxed")
		p.Spec.RuntimeClassName = new("boxed")
		createPod(t, c, ns, p)
	})
	t.Run("images", func(t *testing.T) {
		p := pod("images")
		p.Spec.Containers[0].Image = "docker.io/library/evil:2"
		_, err := c.CoreV1().Pods(ns).Create(t.Context(), p, metav1.CreateOptions{})
		refusedFor(t, err,
			`image policy "fixed": container "main" of pod "images": image "docker.io/library/evil:2" is denied by evil:*`)
	})
	t.Run("tolerations", func(t *testing.T) {
		p := createPod(t, c, ns, pod("patient"))
		for key, want := range map[string]int64{corev1.TaintNodeNotReady: 7, corev1.TaintNodeUnreachable: 0} {
			if !slices.ContainsFunc(p.Spec.Tolerations,
				func(t corev1.Toleration) bool { return t.Key == key && *t.TolerationSeconds == want }) {
				t.Errorf("%s: %v", key, p.Spec.Tolerations)
			}
		}
	})
	t.Run("a file that cannot be used is refused", func(t *testing.T) {
		for text, want := range map[string]string{
			`kind: Pod`: "it must start with apiVersion: apiserver.config.k8s.io/v1 and kind: AdmissionConfiguration",
			`{apiVersion: apiserver.config.k8s.io/v1, kind: AdmissionConfiguration, plugin: []}`:                                                                                                                                                      `unknown field "plugin"`,
			`{apiVersion: apiserver.config.k8s.io/v1, kind: AdmissionConfiguration, plugins: [{name: AlwaysAdmit}]}`:                                                                                                                                  `plug-in "AlwaysAdmit" cannot be configured here; choose one of: PodSecurity`,
			`{apiVersion: apiserver.config.k8s.io/v1, kind: AdmissionConfiguration, plugins: [{name: PodSecurity, path: gone.yaml}]}`:                                                                                                                 "gone.yaml: no such file",
			`{apiVersion: apiserver.config.k8s.io/v1, kind: AdmissionConfiguration, plugins: [{name: PodSecurity}, {name: PodSecurity}]}`:                                                                                                             "PodSecurity is configured twice",
			`{apiVersion: apiserver.config.k8s.io/v1, kind: AdmissionConfiguration, plugins: [{name: PodSecurity, configuration: {apiVersion: pod-security.admission.config.k8s.io/v1, kind: PodSecurityConfiguration, defaults: {enforce: high}}}]}`: "enforce: must be one of privileged, baseline, restricted",
			`{apiVersion: apiserver.config.k8s.io/v1, kind: AdmissionConfiguration, plugins: [{name: ImagePolicy, configuration: {apiVersion: policy.wherry.dev/v1, kind: ImagePolicy, metadata: {name: a}, spec: {allow: ["["]}}}]}`:                 "spec.allow[0]",
			`{apiVersion: apiserver.config.k8s.io/v1, kind: AdmissionConfiguration, plugins: [{name: ImagePolicy, configuration: {apiVersion: policy.wherry.dev/v1, kind: ImagePolicy, metadata: {name: a}, spec: {alow: []}}}]}`:                     `unknown field "spec.alow"`,
		} {
			bad := config
			bad.DataDir, bad.EtcdPrefix = t.TempDir(), "/admission-config-bad"
			bad.Admission = admission.Options{ConfigFile: write("bad.yaml", text)}
			if _, err := api.New(t.Context(), bad); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", text, err)
			}
		}
	})
}

// TestImagePolicies proves EC-21: what policies with other actions do, and whom they are about.
func TestImagePolicies(t *testing.T) {
	config, heard := hearing(adminConfig(t))
	c := clientOf(t, config)
	ns, other := namespace(t, c), namespace(t, c)
	newImagePolicy(t, ns+"-b", imagepolicy.ImagePolicySpec{NamespaceSelector: only(ns),
		Allow: []string{"registry.example/**", "wherry.dev/toolbox"}})
	newImagePolicy(t, ns+"-a", imagepolicy.ImagePolicySpec{Namespaces: []string{ns}, RequireDigest: true,
		Action: imagepolicy.Warn})
	newImagePolicy(t, ns+"-c", imagepolicy.ImagePolicySpec{Namespaces: []string{ns}, Deny: []string{"**"},
		Action: imagepolicy.Audit})
	create := func(ns, name string, change func(*corev1.PodSpec)) error {
		p := pod(name)
		if change != nil {
			change(&p.Spec)
		}
		_, err := c.CoreV1().Pods(ns).Create(t.Context(), p, metav1.CreateOptions{})
		return err
	}
	heard.take()
	if err := create(ns, "warned", nil); err != nil {
		t.Fatal(err)
	}
	if said := heard.take(); !strings.Contains(said, `would violate image policy "`+ns+
		`-a": container "main" of pod "warned": image "registry.example/app:1" is named without a digest`) {
		t.Errorf("warned of %q", said)
	}
	refusedFor(t, create(ns, "refused", func(s *corev1.PodSpec) { s.Containers[0].Image = "nginx:1" }),
		`pods "refused" is forbidden: image policy "`+ns+`-b": `+
			`container "main" of pod "refused": image "nginx:1" is not allowed; allowed are registry.example/**, wherry.dev/toolbox`)
	refusedFor(t, create(ns, "all", func(s *corev1.PodSpec) {
		s.InitContainers = []corev1.Container{{Name: "first", Image: "alpine"}}
		s.Containers[0].Image = "nginx"
	}), `init container "first" of pod "all": image "alpine"`,
		`; image policy "`+ns+`-b": container "main" of pod "all": image "nginx"`)
	if err := create(other, "elsewhere", func(s *corev1.PodSpec) { s.Containers[0].Image = "nginx" }); err != nil {
		t.Errorf("in another namespace: %v", err)
	}
	t.Run("kubectl get", func(t *testing.T) {
		out := kubectl(t, "", "get", "imagepolicies", ns+"-b")
		if !strings.Contains(out, "NAMESPACES") || !strings.Contains(out, "registry.example/**,wherry.dev/toolbox") ||
			!strings.Contains(out, "Enforce") {
			t.Errorf("%s", out)
		}
		if out := kubectl(t, "", "explain", "imagepolicy.spec.requireDigest"); !strings.Contains(out,
			"Whether an image must be named by its digest") {
			t.Errorf("%s", out)
		}
	})
}

// TestPriorityClasses proves EC-21 PL-13: the classes of the system, one default for all, and what pods get of them.
func TestPriorityClasses(t *testing.T) {
	config := api.Config{DataDir: t.TempDir(), BindAddress: "127.0.0.1", EtcdServers: []string{shared.etcd.Endpoint()},
		EtcdPrefix: "/priorities"}
	s, stop := serve(t, config)
	defer stop()
	c := clientOf(t, configOf(t, s))
	ns, classes := namespace(t, c), c.SchedulingV1().PriorityClasses()
	priority := func(name, class string, want int32) {
		t.Helper()
		p := pod(name)
		p.Spec.PriorityClassName = class
		if p = createPod(t, c, ns, p); *p.Spec.Priority != want {
			t.Errorf("%s has priority %d, want %d", name, *p.Spec.Priority, want)
		}
	}
	for name, value := range map[string]int32{"system-cluster-critical": 2000000000,
		"system-node-critical": 2000001000} {
		class, err := classes.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil || class.Value != value {
			t.Errorf("%s: %v, %v", name, class, err)
		}
		refusedFor(t, classes.Delete(t.Context(), name, metav1.DeleteOptions{}),
			"this is a system priority class and cannot be deleted")
		priority(name, name, value)
	}
	refusedFor(t, classes.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}),
		"cannot be deleted")
	priority("plain", "", 0)
	for _, class := range []*schedulingv1.PriorityClass{
		{ObjectMeta: metav1.ObjectMeta{Name: "usual"}, Value: 5, GlobalDefault: true,
			PreemptionPolicy: new(corev1.PreemptNever)}, {ObjectMeta: metav1.ObjectMeta{Name: "low"}, Value: -5},
	} {
		if _, err := classes.Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	priority("usual", "", 5)
	if p := podNow(t, c, ns, "usual"); p.Spec.PriorityClassName != "usual" ||
		*p.Spec.PreemptionPolicy != corev1.PreemptNever {
		t.Errorf("%+v", p.Spec)
	}
	priority("low", "low", -5)
	_, err := classes.Create(t.Context(), &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "second"},
		GlobalDefault: true}, metav1.CreateOptions{})
	refusedFor(t, err, "PriorityClass usual is already marked as default. Only one default can exist")
	_, err = classes.Patch(t.Context(), "low", "application/merge-patch+json", []byte(`{"globalDefault":true}`),
		metav1.PatchOptions{})
	refusedFor(t, err, "already marked as default")
	t.Run("an update that leaves the priority out", func(t *testing.T) {
		p := podNow(t, c, ns, "low")
		p.Spec.Priority, p.Spec.PreemptionPolicy, p.Labels = nil, nil, map[string]string{"a": "b"}
		if p, err := c.CoreV1().Pods(ns).Update(t.Context(), p, metav1.UpdateOptions{}); err != nil ||
			*p.Spec.Priority != -5 {
			t.Errorf("%v, %v", p, err)
		}
	})
	if err := classes.Delete(t.Context(), "usual", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	priority("plain-again", "", 0)
}
