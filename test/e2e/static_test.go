// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/yaml"
)

// manifests is a folder of static pods.
type manifests struct {
	testing.TB
	dir string
}

func newManifests(t *testing.T) manifests { return manifests{t, t.TempDir()} }

// write writes a pod's manifest.
func (m manifests) write(pod *corev1.Pod) {
	m.Helper()
	pod = pod.DeepCopy()
	pod.APIVersion, pod.Kind = "v1", "Pod"
	text, err := yaml.Marshal(pod)
	if err == nil {
		err = os.WriteFile(m.file(pod.Name), text, 0o600)
	}
	if err != nil {
		m.Fatal(err)
	}
}

func (m manifests) file(name string) string { return filepath.Join(m.dir, name+".yaml") }

func (m manifests) remove(name string) {
	m.Helper()
	if err := os.Remove(m.file(name)); err != nil {
		m.Fatal(err)
	}
}

// staticPod is a static pod of a namespace.
func staticPod(namespace, name, script string) *corev1.Pod {
	p := NewPod(name, Named("main", Sh(script)))
	p.Namespace, p.Spec.RestartPolicy = namespace, corev1.RestartPolicyAlways
	return p
}

// waitMirror waits until a mirror pod, which may be deleted and made again meanwhile, is as until says.
func (s *Space) waitMirror(name, what string, until func(*corev1.Pod) bool) *corev1.Pod {
	s.T.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, Timeout)
	defer cancel()
	var last *corev1.Pod
	_, err := watchtools.UntilWithSync(ctx, s.podWatch(name), &corev1.Pod{}, nil, func(e watch.Event) (bool, error) {
		pod, ok := e.Object.(*corev1.Pod)
		if !ok || e.Type == watch.Deleted {
			return false, nil
		}
		last = pod
		return until(pod), nil
	})
	if err != nil {
		s.T.Fatalf("wait for mirror pod %s to %s: %v; it is %s\n%s", name, what, err, summary(last), s.Describe())
	}
	return last
}

func runs(p *corev1.Pod) bool {
	return p.DeletionTimestamp == nil && Condition(p, corev1.PodReady) == corev1.ConditionTrue
}

// TestStaticPods: pods of a folder run, and the API server shows them by their mirror pods, which are made again when they
// are deleted, show what the pods do, and go with their files. (PL-12, PL-31, EC-09)
func TestStaticPods(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	m := newManifests(t)
	srv := own(t, ServerOptions{Args: []string{"--pod-manifest-path", m.dir}})
	s := srv.Space(t)
	node, err := s.Client.CoreV1().Nodes().Get(s.ctx, srv.NodeName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	name := "web-" + srv.NodeName
	m.write(staticPod(s.Namespace, "web", "echo one; "+Idle))
	first := s.WaitReady(name)
	hash := first.Annotations["kubernetes.io/config.hash"]
	if hash == "" || first.Annotations[corev1.MirrorPodAnnotationKey] != hash || first.Annotations["kubernetes.io/config.source"] != "file" ||
		first.Annotations["kubernetes.io/config.seen"] == "" || string(first.UID) == hash {
		t.Errorf("PL-12 the mirror has uid %s and %v", first.UID, first.Annotations)
	}
	if o := first.OwnerReferences; len(o) != 1 || o[0].Kind != "Node" || o[0].UID != node.UID || o[0].Controller == nil || !*o[0].Controller {
		t.Errorf("PL-12 the mirror's owners are %+v", o)
	}
	if first.Generation != 1 || first.Status.ObservedGeneration != 0 {
		t.Errorf("PL-12 the mirror has generation %d, observed %d", first.Generation, first.Status.ObservedGeneration)
	}
	s.Kubectl("logs", name).Has("one")
	s.Kubectl("exec", name, "--", "echo", "inside").Has("inside")
	s.Kubectl("describe", "pod", name).Has("Started")
	s.KubectlFails("debug", name, "--image", "x", "-c", "d").Says("static pods do not support ephemeral containers")
	container := first.Status.ContainerStatuses[0].ContainerID

	for _, grace := range []string{"30", "0"} {
		before := s.Get(name).UID
		s.Kubectl("delete", "pod", name, "--grace-period="+grace, "--wait=false", "--force="+strconv.FormatBool(grace == "0"))
		again := s.waitMirror(name, "come back", func(p *corev1.Pod) bool { return runs(p) && p.UID != before })
		if c := again.Status.ContainerStatuses[0]; c.ContainerID != container || c.RestartCount != 0 {
			t.Errorf("PL-12 the deletion of the mirror has touched the pod: %+v", c)
		}
	}

	m.remove("web")
	m.write(staticPod(s.Namespace, "web", "echo one; "+Idle))
	s.waitMirror(name, "be restarted once", func(p *corev1.Pod) bool { return runs(p) && p.Status.ContainerStatuses[0].RestartCount == 1 })

	before := s.Get(name).UID
	m.write(staticPod(s.Namespace, "web", "echo two; "+Idle))
	changed := s.waitMirror(name, "be another pod", func(p *corev1.Pod) bool { return runs(p) && p.UID != before })
	if changed.Annotations["kubernetes.io/config.hash"] == hash {
		t.Error("PL-12 another manifest has the same hash")
	}
	s.Kubectl("logs", name).Has("two")

	broken := staticPod(s.Namespace, "broken", Idle)
	broken.Spec.ServiceAccountName = "default"
	m.write(broken)
	s.waitNodeEvent("InvalidStaticPod", "static pods may not reference serviceaccounts")
	m.remove("broken")

	fake := staticPod("", "fake", Idle)
	fake.Annotations, fake.Spec.NodeName = map[string]string{corev1.MirrorPodAnnotationKey: "x"}, srv.NodeName
	s.Create(fake)
	ctx, cancel := context.WithTimeout(s.ctx, Timeout)
	defer cancel()
	if err := s.awaitGone(ctx, "pods", s.Namespace, "fake"); err != nil {
		t.Errorf("PL-12 a mirror of no static pod stays: %v", err)
	}

	container = s.Get(name).Status.ContainerStatuses[0].ContainerID
	srv.Kill()
	if err := srv.Start(s.ctx); err != nil {
		t.Fatal(err)
	}
	after := s.waitMirror(name, "be ready", runs)
	if after.Status.ContainerStatuses[0].ContainerID != container || after.UID != changed.UID {
		t.Errorf("PL-31 a kill of the server has touched the pod: %+v", after.Status.ContainerStatuses)
	}
	m.remove("web")
	if err := s.awaitGone(ctx, "pods", s.Namespace, name); err != nil {
		t.Errorf("PL-12 the mirror of a pod whose file is gone stays: %v", err)
	}
}

// waitNodeEvent waits for an event of the node.
func (s *Space) waitNodeEvent(reason, text string) {
	s.T.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, Timeout)
	defer cancel()
	w, err := s.Client.CoreV1().Events("default").Watch(ctx, metav1.ListOptions{FieldSelector: "reason=" + reason})
	if err != nil {
		s.T.Fatal(err)
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		if ev, ok := e.Object.(*corev1.Event); ok && strings.Contains(ev.Message, text) && ev.InvolvedObject.Kind == "Node" {
			return
		}
	}
	s.T.Fatalf("no event %s with %q", reason, text)
}

// alone is an agent without an API server.
type alone struct {
	*Server
	testing.TB
	port   int
	client http.Client
	args   []string
}

// newAlone makes one, with the flags args, and starts it.
func newAlone(t *testing.T, args ...string) *alone {
	t.Helper()
	w := world(t)
	dir, err := os.MkdirTemp("", serverPrefix)
	if err != nil {
		t.Fatal(err)
	}
	a := &alone{TB: t, port: FreePort(t), args: args, Server: &Server{World: w, NodeName: "alone", DataDir: filepath.Join(dir, "d"),
		base: dir, home: filepath.Join(dir, "home"), log: filepath.Join(dir, "agent.log")}}
	if err := os.Mkdir(a.home, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := writePID(dir, ownerFile, os.Getpid()); err != nil {
		t.Fatal(err)
	}
	a.begin()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the end of the agent's log:\n%s", a.LogTail(60))
		}
		if err := a.Purge(context.Background()); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	if err := a.importImages(ctx); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *alone) begin() {
	a.Helper()
	log, err := os.OpenFile(a.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		a.Fatal(err)
	}
	defer log.Close()
	ready, err := listenNotify(filepath.Join(a.base, "notify"))
	if err != nil {
		a.Fatal(err)
	}
	defer ready.Close()
	a.cmd = exec.Command(a.World.Wherry, append([]string{"agent", "--data-dir", a.DataDir, "--node-name", a.NodeName, "--kubelet-port",
		strconv.Itoa(a.port), "--kubelet-address", "127.0.0.1"}, a.args...)...)
	a.cmd.Stdout, a.cmd.Stderr = log, log
	a.cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+ready.LocalAddr().String())
	a.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := a.cmd.Start(); err != nil {
		a.Fatal(err)
	}
	done := make(chan struct{})
	a.done = done
	go func() { a.err = a.cmd.Wait(); close(done) }()
	if err := writePID(a.base, serverFile, a.PID()); err != nil {
		a.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if err := a.awaitNotify(ctx, ready); err != nil {
		a.Fatalf("%v; the end of its log:\n%s", err, a.LogTail(40))
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(a.DataDir, "pki", "node-admin.crt"), filepath.Join(a.DataDir, "pki", "node-admin.key"))
	if err != nil {
		a.Fatal(err)
	}
	a.client = http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{pair},
		InsecureSkipVerify: true}}} //nolint:gosec // its own CA is not what is tested
}

// get asks the node's API.
func (a *alone) get(path string) string {
	a.Helper()
	resp, err := a.client.Get(fmt.Sprintf("https://127.0.0.1:%d%s", a.port, path))
	if err != nil {
		a.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		a.Fatal(err)
	}
	return string(text)
}

// logs follows the log of a container until it has a line.
func (a *alone) logs(container, line string) {
	a.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet,
		fmt.Sprintf("https://127.0.0.1:%d/containerLogs/default/%s?follow=true", a.port, container), nil)
	if err != nil {
		a.Fatal(err)
	}
	resp, err := a.client.Do(req)
	if err != nil {
		a.Fatal(err)
	}
	defer resp.Body.Close()
	var seen []string
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if lines.Text() == line {
			return
		}
		seen = append(seen, lines.Text())
	}
	a.Fatalf("the log of %s has no line %q, but %q", container, line, seen)
}

// wait asks for the pods until they are as until says: there is no watch here.
func (a *alone) wait(what string, until func([]corev1.Pod) bool) []corev1.Pod {
	a.Helper()
	var list corev1.PodList
	for end := time.Now().Add(Timeout); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		list = corev1.PodList{}
		if err := json.Unmarshal([]byte(a.get("/pods")), &list); err != nil {
			a.Fatal(err)
		}
		if until(list.Items) {
			return list.Items
		}
	}
	a.Fatalf("wait for pods to %s: they are %+v", what, list.Items)
	return nil
}

func oneRuns(pods []corev1.Pod) bool { return len(pods) == 1 && runs(&pods[0]) }

// TestStandalone: an agent without any API server runs the pods of a folder, across kill -9 and what a reboot leaves, and
// ends them with their files, also those that went while it was away. (PL-31, PL-12, PL-36)
func TestStandalone(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	m := newManifests(t)
	a := newAlone(t, "--pod-manifest-path", m.dir)
	pod := staticPod("", "web", "echo one; "+Idle)
	pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/v"}}
	m.write(pod)
	up := a.wait("run", oneRuns)[0]
	if up.Name != "web-alone" || up.Annotations["kubernetes.io/config.hash"] != string(up.UID) {
		t.Errorf("PL-31 it is %s %s %v", up.Name, up.UID, up.Annotations)
	}
	a.logs("web-alone/main", "one") // that it runs does not say that it has come to print anything
	if text := a.get("/configz"); !strings.Contains(text, "kubeletconfig") {
		t.Errorf("PL-31 /configz is %q", text)
	}
	if text := a.get("/metrics/resource"); !strings.Contains(text, `container_memory_working_set_bytes{container="main",namespace="default",pod="web-alone"}`) ||
		!strings.Contains(text, "resource_scrape_error 0") || !strings.Contains(text, "node_cpu_usage_seconds_total ") {
		t.Errorf("PL-36 /metrics/resource is\n%s", text)
	}
	a.Kill()
	a.begin()
	again := a.wait("run", oneRuns)[0]
	if same := up.Status.ContainerStatuses[0].ContainerID; again.Status.ContainerStatuses[0].ContainerID != same || again.UID != up.UID {
		t.Errorf("PL-31 kill -9 has touched the pod: %+v", again.Status)
	}

	pod.Spec.Containers[0].Command[2] = "echo two; " + Idle
	m.write(pod)
	changed := a.wait("be another", func(p []corev1.Pod) bool { return oneRuns(p) && p[0].UID != up.UID })
	if changed[0].Name != up.Name {
		t.Errorf("PL-12 it is %s now", changed[0].Name)
	}
	if err := a.Stop(); err != nil {
		t.Error(err)
	}
	m.remove("web")
	a.begin()
	a.wait("be gone", func(p []corev1.Pod) bool { return len(p) == 0 })
	if left, err := os.ReadDir(filepath.Join(a.DataDir, "pods")); err != nil || len(left) > 0 {
		t.Errorf("PL-38 left are %v, %v", left, err)
	}
}
