// SPDX-License-Identifier: Apache-2.0

package serviceproxy

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/utils/ptr"
)

// TestProgress (WL-09): the proxy is healthy unless a change has waited for a minute; what comes while another is made
// waits from then on.
func TestProgress(t *testing.T) {
	began := time.Unix(1_000_000, 0)
	after := func(d time.Duration) time.Time { return began.Add(d) }
	var p progress
	p.changed(began)
	if !p.healthy(after(time.Hour)) || p.report(began).Status != nil {
		t.Error("one that has not begun is late")
	}
	p.equal(after(time.Second), false)
	if r := p.report(after(time.Hour)); !r.Healthy || !r.LastUpdated.Equal(after(time.Hour)) || len(r.Status) != 2 {
		t.Errorf("one with nothing to do: %+v", r)
	}
	p.changed(after(2 * time.Second))
	p.changed(after(50 * time.Second))
	if !p.healthy(after(staleAfter + time.Second)) {
		t.Error("it is late before its time")
	}
	r := p.report(after(staleAfter + 2*time.Second))
	if r.Healthy || r.Status[corev1.IPv4Protocol].Healthy || !r.LastUpdated.Equal(after(time.Second)) {
		t.Errorf("one that is late: %+v", r)
	}
	p.equal(after(2*time.Minute), true)
	if p.healthy(after(2*time.Minute)) != true || p.healthy(after(2*time.Minute+staleAfter)) {
		t.Error("what came while it was made does not wait")
	}
}

// TestNodeSeen (WL-09): the node's zone, and whether load balancers should send it anything.
func TestNodeSeen(t *testing.T) {
	node := func(change ...func(*corev1.Node)) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{corev1.LabelTopologyZone: "z"}}}
		for _, c := range change {
			c(n)
		}
		return n
	}
	taint := func(key string) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key}) }
	}
	for _, c := range []struct {
		name string
		node *corev1.Node
		want nodeSeen
	}{
		{"none", nil, nodeSeen{}},
		{"a node", node(taint("example.com/x")), nodeSeen{"z", true}},
		{"about to go", node(taint(toBeDeleted)), nodeSeen{"z", false}},
		{"deleted", node(func(n *corev1.Node) { n.DeletionTimestamp = ptr.To(metav1.Now()) }), nodeSeen{"z", false}},
	} {
		if got := seenOf(c.node); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// TestAsKubeProxy (WL-09): /healthz, /livez, /metrics and /proxyMode answer as a kube-proxy's do; what the API server in
// the same process counts is not shown to those who show nothing of themselves.
func TestAsKubeProxy(t *testing.T) {
	p := &Proxy{measures: newMeasures(), wake: make(chan struct{}, 1), dirty: map[string]bool{}}
	ask := func(h http.Handler, path string) (int, string, http.Header) {
		t.Helper()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		return w.Code, w.Body.String(), w.Header()
	}
	expect := func(path string, code int, eligible *bool, healthy bool) {
		t.Helper()
		got, body, header := ask(p.healthHandler(), path)
		var r report
		if err := json.Unmarshal([]byte(body), &r); err != nil {
			t.Fatalf("%s: %v: %s", path, err, body)
		}
		if got != code || r.Healthy != healthy || !ptr.Equal(r.NodeEligible, eligible) || header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %s", path, got, body)
		}
	}
	expect("/healthz", 503, ptr.To(false), true) // there is no node yet
	expect("/livez", 200, nil, true)
	p.setNode(nodeSeen{eligible: true})
	expect("/healthz", 200, ptr.To(true), true)
	p.progress.equal(time.Now().Add(-time.Hour), true)
	expect("/healthz", 503, ptr.To(true), false)
	expect("/livez", 503, nil, false)
	p.mark("ns/web")
	p.measures.passed(time.Unix(7, 0), time.Unix(8, 0), nil)
	if _, body, _ := ask(p.metricsHandler(), "/proxyMode"); body != "nftables" {
		t.Errorf("/proxyMode: %q", body)
	}
	others := metrics.NewCounter(&metrics.CounterOpts{Name: "apiserver_of_this_test_total"})
	legacyregistry.MustRegister(others)
	others.Inc()
	code, body, _ := ask(p.metricsHandler(), "/metrics")
	for line := range strings.Lines(body) {
		if name := strings.TrimLeft(line, "# "); !slices.ContainsFunc([]string{"kubeproxy_", "process_", "go_", "HELP ", "TYPE "},
			func(of string) bool { return strings.HasPrefix(name, of) }) || strings.Contains(line, "apiserver_") {
			t.Errorf("/metrics is not the proxy's: %s", line)
		}
	}
	for _, want := range []string{`kubeproxy_proxy_healthz_total{code="503"} 2`, `kubeproxy_proxy_livez_total{code="200"} 1`,
		"kubeproxy_sync_proxy_rules_duration_seconds_count 1", "kubeproxy_sync_proxy_rules_last_timestamp_seconds 8",
		"kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds 1.", "process_cpu_seconds_total", "go_goroutines"} {
		if code != 200 || !strings.Contains(body, want) {
			t.Errorf("/metrics: %d, no %s", code, want)
		}
	}
}
