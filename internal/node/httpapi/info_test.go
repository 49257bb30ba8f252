// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

func TestPods(t *testing.T) {
	w := newWorld(t)
	for path, want := range map[string]string{"/pods": "uid-1 [main waiting]", "/pods/": "uid-1 [main waiting]", "/runningpods/": "uid-1 [main debug]"} {
		code, body := w.get(w.masters, path)
		var list corev1.PodList
		if err := json.Unmarshal([]byte(body), &list); err != nil || code != 200 || list.Kind != "PodList" || list.APIVersion != "v1" || len(list.Items) != 1 {
			t.Errorf("%s: %d %s (%v)", path, code, body, err)
			continue
		}
		var names []string
		for _, c := range list.Items[0].Spec.Containers {
			names = append(names, c.Name)
		}
		if got := fmt.Sprint(list.Items[0].UID, " ", names); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	w.fake.Down()
	if code, _ := w.get(w.masters, "/runningpods"); code != 503 {
		t.Errorf("/runningpods with the runtime away: %d", code)
	}
}

// TestImageNames proves RS-12: the node tells what an image is called besides its id, to those who may read through it.
func TestImageNames(t *testing.T) {
	w := newWorld(t)
	images, err := w.fake.ListImages(t.Context(), &runtimeapi.ListImagesRequest{})
	if err != nil || len(images.Images) == 0 {
		t.Fatalf("%v, %v", images, err)
	}
	one := images.Images[0]
	for query, want := range map[string][]string{
		one.Id:                 append(slices.Clone(one.RepoTags), one.RepoDigests...),
		"sha256:" + "00000000": {},
	} {
		code, body := w.get(w.masters, "/imageNames?image="+url.QueryEscape(query))
		var got struct{ Names []string }
		if err := json.Unmarshal([]byte(body), &got); err != nil || code != 200 || got.Names == nil || !slices.Equal(got.Names, want) {
			t.Errorf("%s: %d %s, want %v", query, code, body, want)
		}
	}
	if code, _ := w.get(w.masters, "/imageNames"); code != 400 {
		t.Errorf("of no image: %d", code)
	}
	w.fake.Down()
	if code, _ := w.get(w.masters, "/imageNames?image="+one.Id); code != 503 {
		t.Errorf("with the runtime away: %d", code)
	}
	for _, a := range attributesOf("n", "GET", "/imageNames") {
		if a.Subresource != "proxy" || a.Verb != "get" {
			t.Errorf("the right that is needed: %+v", a)
		}
	}
}

func TestStatsSummary(t *testing.T) {
	w := newWorld(t, func(c *Config) {
		c.NodeStats = func(context.Context) (statsapi.NodeStats, error) {
			n := uint64(5)
			return statsapi.NodeStats{CPU: &statsapi.CPUStats{UsageNanoCores: &n}, Fs: &statsapi.FsStats{}}, nil
		}
	})
	read := func(query string) statsapi.Summary {
		t.Helper()
		code, body := w.get(w.masters, "/stats/summary"+query)
		var s statsapi.Summary
		if err := json.Unmarshal([]byte(body), &s); err != nil || code != 200 || len(s.Pods) != 1 || len(s.Pods[0].Containers) != 2 {
			t.Fatalf("%d %s (%v)", code, body, err)
		}
		return s
	}
	s := read("")
	p := s.Pods[0]
	if s.Node.NodeName != "node-1" || *s.Node.CPU.UsageNanoCores != 5 || p.PodRef != (statsapi.PodReference{Name: "web", Namespace: "default", UID: "uid-1"}) {
		t.Errorf("summary: %+v", s)
	}
	main := p.Containers[0]
	if main.Name != "main" || main.StartTime.Unix() != 1700000000 || *main.Memory.WorkingSetBytes == 0 || *main.Rootfs.UsedBytes != 4096 ||
		*p.Network.RxBytes != 100 || *p.ProcessStats.ProcessCount != 1 || *p.EphemeralStorage.UsedBytes != 2*4096 {
		t.Errorf("pod: %+v", p)
	}
	if s := read("?only_cpu_and_memory=true"); s.Pods[0].Network != nil || s.Pods[0].Containers[0].Rootfs != nil || s.Node.Fs != nil || s.Pods[0].CPU == nil {
		t.Errorf("only CPU and memory: %+v", s)
	}

	w.fake.Unsupport("ListPodSandboxStats")
	p = read("").Pods[0]
	sum := *p.Containers[0].Memory.WorkingSetBytes + *p.Containers[1].Memory.WorkingSetBytes
	if *p.Memory.WorkingSetBytes != sum || *p.CPU.UsageNanoCores == 0 || p.Network != nil || *p.EphemeralStorage.UsedBytes != 2*4096 {
		t.Errorf("from containers: %+v", p)
	}
	w.fake.Unsupport("ListContainerStats")
	if code, _ := w.get(w.masters, "/stats/summary"); code != 501 {
		t.Errorf("without any stats: %d", code)
	}
}

// PL-36: what metrics-server and its like read: counters and sizes of the node, of each pod and container, in the kubelet's
// names, each once; and a runtime that does not answer is told as an error of the scrape, with what is known all the same.
func TestMetricsResource(t *testing.T) {
	w := newWorld(t, func(c *Config) {
		c.NodeStats = func(context.Context) (statsapi.NodeStats, error) {
			n := uint64(3e9)
			return statsapi.NodeStats{CPU: &statsapi.CPUStats{UsageCoreNanoSeconds: &n},
				Memory: &statsapi.MemoryStats{WorkingSetBytes: &n}}, nil
		}
	})
	code, body := w.get(w.masters, "/metrics/resource")
	for _, want := range []string{"resource_scrape_error 0\n", "node_cpu_usage_seconds_total 3\n", "node_memory_working_set_bytes 3e+09\n",
		`container_cpu_usage_seconds_total{container="main",namespace="default",pod="web"} `,
		`container_memory_working_set_bytes{container="main",namespace="default",pod="web"} `,
		`container_start_time_seconds{container="main",namespace="default",pod="web"} 1.7e+09`,
		`pod_cpu_usage_seconds_total{namespace="default",pod="web"} `, `pod_memory_working_set_bytes{namespace="default",pod="web"} `,
		"# TYPE container_cpu_usage_seconds_total counter", "# TYPE pod_memory_working_set_bytes gauge"} {
		if code != 200 || strings.Count(body, want) != 1 {
			t.Errorf("PL-36 %d, %q is there %d times in\n%s", code, want, strings.Count(body, want), body)
		}
	}
	w.fake.Down()
	if code, body := w.get(w.masters, "/metrics/resource"); code != 200 || body == "" || !strings.Contains(body, "resource_scrape_error 1\n") {
		t.Errorf("PL-36 with the runtime away: %d\n%s", code, body)
	}
}

func TestHealthAndMetrics(t *testing.T) {
	var sick error
	w := newWorld(t, func(c *Config) {
		c.Health = func() error { return sick }
		c.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "up 1") })
		c.Configz = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "{}") })
	})
	for path, want := range map[string]string{"/healthz": "ok", "/healthz/ping": "ok", "/healthz/syncloop": "ok", "/metrics": "up 1", "/configz": "{}"} {
		if code, body := w.get(w.masters, path); code != 200 || body != want {
			t.Errorf("%s: %d %q", path, code, body)
		}
	}
	sick = errors.New("the runtime is away")
	if code, body := w.get(w.masters, "/healthz"); code != 500 || !strings.Contains(body, "runtime is away") {
		t.Errorf("/healthz: %d %q", code, body)
	}
	if code, _ := w.get(w.masters, "/healthz/ping"); code != 200 {
		t.Errorf("/healthz/ping: %d", code)
	}
}

func TestLogFiles(t *testing.T) {
	outside := t.TempDir()
	dir := filepath.Join(outside, "log")
	for path, text := range map[string]string{filepath.Join(outside, "secret"): "secret", filepath.Join(dir, "pods", "a.log"): "line"} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(outside, "secret"), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../secret", filepath.Join(dir, "link2")); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, func(c *Config) { c.LogDir = dir })
	if code, body := w.get(w.masters, "/logs/pods/a.log"); code != 200 || body != "line" {
		t.Errorf("a log file: %d %q", code, body)
	}
	if code, body := w.get(w.masters, "/logs/"); code != 200 || !strings.Contains(body, "pods/") {
		t.Errorf("the list: %d %q", code, body)
	}
	for _, path := range []string{"/logs/../secret", "/logs/%2e%2e/secret", "/logs/..%2fsecret", "/logs/link", "/logs/link2", "/logs//etc/passwd", "/logs/%2fetc/passwd"} {
		if code, body := w.get(w.masters, path); code == 200 || strings.Contains(body, "secret\n") || strings.Contains(body, "root:") {
			t.Errorf("%s led out of the folder: %d %q", path, code, body)
		}
	}
	none := newWorld(t)
	if code, _ := none.get(none.masters, "/logs/"); code != 404 {
		t.Errorf("without a folder: %d", code)
	}
}
