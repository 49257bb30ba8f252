// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const configManifest = `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, labels: {from: file}}
data: {colour: COLOUR, shape: round}
`

// TestApplyClientSide: kubectl apply creates, changes, leaves alone, removes what the manifest no longer has, and keeps what
// others added.
func TestApplyClientSide(t *testing.T) {
	t.Parallel()
	s := shared(t)
	eachKubectl(t, s, func(t *testing.T, s *Space) {
		s.KubectlEnv(nil, "delete", "configmap", "settings", "--ignore-not-found")
		red, blue := strings.Replace(configManifest, "COLOUR", "red", 1), strings.Replace(configManifest, "COLOUR", "blue", 1)
		s.Apply(red).Is("configmap/settings created")
		s.Apply(red).Is("configmap/settings unchanged")
		s.Kubectl("annotate", "configmap", "settings", "by=hand").Is("configmap/settings annotated")
		if r := s.KubectlIn(blue, "diff", "-f", "-"); r.Code != 1 || !strings.Contains(r.Out, "+  colour: blue") {
			t.Errorf("kubectl diff: %d\n%s%s", r.Code, r.Out, r.Err)
		}
		s.Apply(blue, "--dry-run=server").Is("configmap/settings configured (server dry run)")
		s.Kubectl("get", "cm", "settings", "-o", "jsonpath={.data.colour}").Is("red")
		s.Apply(strings.Replace(blue, ", shape: round", "", 1)).Is("configmap/settings configured")
		s.Kubectl("get", "cm", "settings", "-o", "jsonpath={.data} {.metadata.annotations.by}").Is(`{"colour":"blue"} hand`)
		s.KubectlIn(red, "delete", "-f", "-").Has(`configmap "settings" deleted`)
	})
}

// TestApplyServerSide: server-side apply knows who owns which field: a second manager's other value is a conflict that names
// the first, until forced; fields that a manager no longer applies go.
func TestApplyServerSide(t *testing.T) {
	t.Parallel()
	s := shared(t)
	eachKubectl(t, s, func(t *testing.T, s *Space) {
		s.KubectlEnv(nil, "delete", "configmap", "settings", "--ignore-not-found")
		red, blue := strings.Replace(configManifest, "COLOUR", "red", 1), strings.Replace(configManifest, "COLOUR", "blue", 1)
		s.Apply(red, "--server-side", "--field-manager=ann").Is("configmap/settings serverside-applied")
		r := s.KubectlIn(blue, "apply", "--server-side", "--field-manager=bob", "-f", "-")
		if r.Code == 0 {
			t.Errorf("bob's apply did not conflict: %s", r.Out)
		}
		r.Says(`conflict with "ann": .data.colour`)
		s.Apply(blue, "--server-side", "--field-manager=bob", "--force-conflicts").Is("configmap/settings serverside-applied")
		s.Kubectl("get", "cm", "settings", "-o", "jsonpath={.data.colour}").Is("blue")
		s.Kubectl("get", "cm", "settings", "-o", "yaml", "--show-managed-fields").Has("manager: ann", "manager: bob", "operation: Apply")
		s.Apply(strings.Replace(blue, "colour: blue, ", "", 1), "--server-side", "--field-manager=bob")
		s.Kubectl("get", "cm", "settings", "-o", "jsonpath={.data}").Is(`{"shape":"round"}`)
	})
	// A pod, too: the image of a container in a list with keys.
	s.Apply(podManifest, "--server-side").Is("pod/web serverside-applied")
	s.WaitReady("web")
	s.Apply(podManifest, "--server-side").Is("pod/web serverside-applied")
	s.Kubectl("get", "pod", "web", "-o", "jsonpath={.spec.containers[0].env[0].value}").Is("hello")
}

// TestPatch: all kinds of patches, labels and annotations, on a running pod; its image can be changed, which restarts the
// container, most else cannot.
func TestPatch(t *testing.T) {
	t.Parallel()
	s := shared(t)
	s.Create(NewPod("web", Tool("http"), Tool("sleep")))
	before := s.WaitReady("web")
	get := func(path string) Result {
		t.Helper()
		return s.Kubectl("get", "pod", "web", "-o", "jsonpath={"+path+"}")
	}
	s.Kubectl("label", "pod", "web", "tier=front", "app-")
	get(".metadata.labels").Is(`{"tier":"front"}`)
	s.KubectlFails("label", "pod", "web", "tier=back").Says("already has a value (front)")
	s.Kubectl("label", "pod", "web", "tier=back", "--overwrite")
	s.KubectlFails("label", "pod", "web", "bad=-x-").Says("-x-", "a valid label must")
	s.KubectlFails("patch", "pod", "web", "-p", `{"metadata":{"labels":{"bad":"-x-"}}}`).Says("metadata.labels", "-x-")
	s.Kubectl("annotate", "pod", "web", "note=a b c").Is("pod/web annotated")
	s.Kubectl("patch", "pod", "web", "--type", "json", "-p", `[{"op":"add","path":"/metadata/labels/json","value":"yes"}]`)
	s.Kubectl("patch", "pod", "web", "--type", "merge", "-p", `{"metadata":{"labels":{"merge":"yes","tier":null}}}`)
	s.Kubectl("patch", "pod", "web", "--type", "strategic", "-p", `{"metadata":{"labels":{"strategic":"yes"}},"spec":{"containers":[{"name":"second","image":"wherry.test/absent:9"}]}}`)
	get(".metadata.labels").Is(`{"json":"yes","merge":"yes","strategic":"yes"}`)
	get(".spec.containers[*].image").Is("wherry.test/tool:1 wherry.test/absent:9")
	s.KubectlFails("patch", "pod", "web", "--type", "json", "-p", `[{"op":"remove","path":"/metadata/labels/nosuch"}]`).Says("The request is invalid")
	s.KubectlFails("patch", "pod", "web", "-p", `{"spec":{"restartPolicy":"Never"}}`).Says("spec: Forbidden: pod updates may not change fields other than")
	s.KubectlFails("patch", "pod", "web", "--type", "merge", "-p", `{"spec":{"nodeName":"other"}}`).Says("Forbidden")
	s.KubectlFails("patch", "pod", "web", "-p", `{"metadata":{"uid":"x"}}`).Says("uid")
	s.Kubectl("set", "image", "pod/web", "second=wherry.test/tool:1")
	p := s.WaitReady("web")
	if p.Status.PodIP != before.Status.PodIP || Status(p, "main").RestartCount != 0 {
		t.Errorf("it is %s", summary(p))
	}
}

// TestConflict: an update made from an old version is refused with 409, also what kubectl replace and edit make of it; nothing
// is lost.
func TestConflict(t *testing.T) {
	t.Parallel()
	s := shared(t)
	s.Kubectl("create", "configmap", "cm", "--from-literal", "a=1")
	maps := s.Client.CoreV1().ConfigMaps(s.Namespace)
	old, err := maps.Get(s.Context(), "cm", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "cm.yaml")
	if err := os.WriteFile(file, []byte(s.Kubectl("get", "cm", "cm", "-o", "yaml").Out), 0o644); err != nil {
		t.Fatal(err)
	}
	s.Kubectl("patch", "cm", "cm", "-p", `{"data":{"a":"2"}}`)
	old.Data["a"] = "3"
	_, err = maps.Update(s.Context(), old, metav1.UpdateOptions{})
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "the object has been modified; please apply your changes to the latest version and try again") {
		t.Errorf("update of an old version: %v", err)
	}
	s.KubectlFails("replace", "-f", file).Says("Error from server (Conflict)", "the object has been modified")
	s.Kubectl("get", "cm", "cm", "-o", "jsonpath={.data.a}").Is("2")

	eachKubectl(t, s, func(t *testing.T, s *Space) {
		edit := func(script string) Result {
			c := s.KubectlCommand("edit", "cm", "cm")
			c.Env = append(c.Env, "KUBE_EDITOR=sh -c '"+script+"' --", "TMPDIR="+t.TempDir())
			return c.run()
		}
		if r := edit(`sed -i s/a:\ .*/a:\ edited/ $1`); r.Code != 0 {
			t.Fatalf("%s: %s%s", r.Line, r.Out, r.Err)
		}
		s.Kubectl("get", "cm", "cm", "-o", "jsonpath={.data.a}").Is("edited")
		edit("true").Says("Edit cancelled")
		// While the editor is open another client changes another field: kubectl edit sends only what was edited, so both stay.
		other := fmt.Sprintf("%s --kubeconfig %s -n %s label cm cm other=x --overwrite; sed -i s/a:\\ .*/a:\\ late/ $1", s.World.Kubectls[0].Path, s.Kubeconfig, s.Namespace)
		if r := edit(other); r.Code != 0 {
			t.Errorf("%s: %d %s%s", r.Line, r.Code, r.Out, r.Err)
		}
		s.Kubectl("get", "cm", "cm", "-o", "jsonpath={.data.a} {.metadata.labels.other}").Is("late x")
		// An edit of the version itself is an edit of an old version: 409, and the edit is kept in a file.
		edit(`sed -i -e s/a:\ .*/a:\ lost/ -e s/resourceVersion:.*/resourceVersion:\ \"1\"/ $1`).Says("the object has been modified", "You can run `kubectl replace -f ")
		s.Kubectl("get", "cm", "cm", "-o", "jsonpath={.data.a}").Is("late")
		s.Kubectl("patch", "cm", "cm", "-p", `{"data":{"a":"2"}}`)
	})
}

// TestRefused: manifests that cannot be, each with a message that names the field and what is wrong, and nothing made (PL-15).
func TestRefused(t *testing.T) {
	t.Parallel()
	s := shared(t)
	pod := func(spec string) string {
		return "apiVersion: v1\nkind: Pod\nmetadata: {name: bad}\nspec:\n  " + strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  ") + "\n"
	}
	const main = "containers: [{name: main, image: i}]\n"
	for name, c := range map[string]struct {
		manifest string
		says     []string
	}{
		"malformed YAML":     {"apiVersion: v1\nkind: Pod\n  metadata: {", []string{"error converting YAML to JSON", "line"}},
		"unknown field":      {pod("containers: [{name: main, image: i, comand: [x]}]"), []string{`unknown field "spec.containers[0].comand"`}},
		"twice":              {pod("containers: [{name: main, image: i}, {name: main, image: i}]"), []string{"spec.containers[1].name", "Duplicate value"}},
		"wrong type":         {pod("containers: [{name: main, image: i, args: run}]"), []string{"args"}},
		"no kind":            {"apiVersion: v1\nmetadata: {name: x}\n", []string{"kind"}},
		"unknown kind":       {"apiVersion: apps.wherry.test/v1\nkind: Pot\nmetadata: {name: x}\n", []string{`no matches for kind "Pot" in version "apps.wherry.test/v1"`}},
		"no containers":      {pod("containers: []"), []string{"spec.containers: Required value"}},
		"no image":           {pod("containers: [{name: main}]"), []string{"spec.containers[0].image: Required value"}},
		"bad name":           {strings.Replace(pod(main), "name: bad", "name: Bad_Name", 1), []string{"metadata.name", "lowercase RFC 1123 subdomain"}},
		"long name":          {strings.Replace(pod(main), "name: bad", "name: "+strings.Repeat("x", 254), 1), []string{"metadata.name", "must be no more than 253"}},
		"container name":     {pod("containers: [{name: " + strings.Repeat("x", 64) + ", image: i}]"), []string{"spec.containers[0].name", "must be no more than 63"}},
		"bad policy":         {pod(main + "restartPolicy: Sometimes"), []string{`spec.restartPolicy: Unsupported value: "Sometimes"`, `"Always"`}},
		"bad port":           {pod("containers: [{name: main, image: i, ports: [{containerPort: 70000}]}]"), []string{"spec.containers[0].ports[0].containerPort", "between 1 and 65535"}},
		"bad quantity":       {pod("containers: [{name: main, image: i, resources: {limits: {memory: lots}}}]"), []string{"quantities must match the regular expression"}},
		"missing volume":     {pod("containers: [{name: main, image: i, volumeMounts: [{name: v, mountPath: /v}]}]"), []string{`spec.containers[0].volumeMounts[0].name: Not found: "v"`}},
		"bad init policy":    {pod(main + "initContainers: [{name: side, image: i, restartPolicy: Sometimes}]"), []string{"spec.initContainers[0].restartPolicy"}},
		"ephemeral":          {pod(main + "ephemeralContainers: [{name: dbg, image: i}]"), []string{"spec.ephemeralContainers"}},
		"iscsi":              {pod(main + "volumes: [{name: v, iscsi: {targetPortal: '192.0.2.1:3260', iqn: 'iqn.2026-01.test:x', lun: 0}}]"), []string{"spec.volumes[0].iscsi", "not supported yet"}},
		"runtime class":      {pod(main + "runtimeClassName: other"), []string{`RuntimeClass "other" not found`}},
		"unmasked /proc":     {pod("containers: [{name: main, image: i, securityContext: {procMount: Unmasked}}]"), []string{"procMount", "must be false"}},
		"two PID modes":      {pod(main + "hostPID: true\nshareProcessNamespace: true"), []string{"shareProcessNamespace"}},
		"other namespace":    {strings.Replace(pod(main), "name: bad", "name: bad, namespace: elsewhere", 1), []string{"does not match"}},
		"no service account": {pod(main + "serviceAccountName: nobody"), []string{`serviceaccounts "nobody" not found`}},
	} {
		t.Run("PL-15 "+name, func(t *testing.T) {
			r := s.With(t).KubectlIn(c.manifest, "create", "-f", "-")
			if r.Code == 0 {
				t.Errorf("it was taken: %s", r.Out)
			}
			r.Says(c.says...)
		})
	}
	s.Kubectl("get", "pods", "-o", "name").Is("")

	big := NewPod("big", Tool("sleep"))
	big.Annotations = map[string]string{}
	for i := range 8 {
		big.Spec.Containers[0].Env = append(big.Spec.Containers[0].Env, corev1.EnvVar{Name: fmt.Sprintf("E%d", i), Value: strings.Repeat("x", 250_000)})
	}
	_, err := s.TryCreate(big)
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !strings.Contains(err.Error(), "too large") {
		t.Errorf("a pod of 2 MB: %v", err)
	}
	_, err = s.Client.CoreV1().Pods(s.Namespace).Patch(s.Context(), "nosuch", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("patch of a pod that is not there: %v", err)
	}
}
