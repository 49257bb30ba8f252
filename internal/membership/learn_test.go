// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/wherryproject/wherry/internal/api/nodenetwork"
	"github.com/wherryproject/wherry/internal/controllers/nodeipam"
)

// cluster plays an API server with one node at most.
type cluster struct {
	wherry bool
	gives  string // the network that a node gets when it wishes for one, or is made; empty: none

	mu     sync.Mutex
	node   *corev1.Node
	made   int
	denies int // how often nodes have no right to ask yet
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch path := strings.TrimSuffix(r.URL.Path, "/n"); {
	case path == "/version" && c.wherry:
		_ = json.NewEncoder(w).Encode(version.Info{GitVersion: "v1.37.2+wherry-devel"})
	case path == "/version":
		_ = json.NewEncoder(w).Encode(version.Info{GitVersion: "v1.37.2"})
	case path == nodenetwork.Path && (!c.wherry || c.denies > 0):
		c.denies--
		refuse(w, metav1.StatusReasonForbidden, http.StatusForbidden)
	case path == nodenetwork.Path:
		_ = json.NewEncoder(w).Encode(nodenetwork.Cluster{ServiceCIDRs: []string{"10.96.0.0/12"},
			ClusterDNS: []string{"10.96.0.10"}})
	case path != "/api/v1/nodes":
		refuse(w, metav1.StatusReasonNotFound, http.StatusNotFound)
	case r.Method == http.MethodPost:
		c.node = &corev1.Node{}
		if err := json.NewDecoder(r.Body).Decode(c.node); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		c.made++
		c.give()
		_ = json.NewEncoder(w).Encode(c.node)
	case r.Method == http.MethodPatch:
		var patch corev1.Node
		_ = json.NewDecoder(r.Body).Decode(&patch)
		c.node.Annotations = patch.Annotations
		c.give()
		_ = json.NewEncoder(w).Encode(c.node)
	case r.URL.Query().Get("watch") != "":
		w.(http.Flusher).Flush()
	case r.URL.Path == "/api/v1/nodes/n" && c.node == nil:
		refuse(w, metav1.StatusReasonNotFound, http.StatusNotFound)
	case r.URL.Path == "/api/v1/nodes/n":
		_ = json.NewEncoder(w).Encode(c.node)
	default:
		list := corev1.NodeList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"},
			ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
		if c.node != nil {
			list.Items = append(list.Items, *c.node)
		}
		_ = json.NewEncoder(w).Encode(list)
	}
}

func (c *cluster) give() {
	c.node.APIVersion, c.node.Kind = "v1", "Node"
	if c.gives != "" {
		c.node.Spec.PodCIDRs = []string{c.gives}
	}
}

func refuse(w http.ResponseWriter, why metav1.StatusReason, code int) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status: metav1.StatusFailure, Reason: why, Code: int32(code)})
}

func prefixes(text string) (out []netip.Prefix) {
	for _, t := range strings.Fields(text) {
		out = append(out, netip.MustParsePrefix(t))
	}
	return out
}

func (c *cluster) client(t *testing.T) kubernetes.Interface {
	t.Helper()
	s := httptest.NewServer(c)
	t.Cleanup(s.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: s.URL,
		ContentConfig: rest.ContentConfig{ContentType: "application/json"}})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// WL-20: which network the pods of a machine have.
func TestFixed(t *testing.T) {
	for _, tc := range []struct {
		what                              string
		given, chosen, before, held, want string
	}{
		{"none is given", "", "10.1.0.0/24", "10.1.0.0/24", "10.1.0.0/24", "[] [] <nil>"},
		{"a first one", "10.9.1.0/24", "", "", "", "[10.9.1.0/24] [] <nil>"},
		{"that of before", "10.9.1.0/24", "", "10.9.1.0/24", "10.9.1.0/24", "[10.9.1.0/24] [] <nil>"},
		{"another one, and no pod runs", "10.9.1.0/24", "", "10.1.0.0/24", "", "[10.9.1.0/24] [] <nil>"},
		{"another one, and pods run", "10.9.1.0/24", "", "10.1.0.0/24", "10.1.0.0/24",
			"[10.1.0.0/24] [10.9.1.0/24] <nil>"},
		{"the chosen one", "10.9.1.0/24", "10.9.1.0/24", "10.1.0.0/24", "", "[10.9.1.0/24] [] <nil>"},
		{"another than the chosen one", "10.9.1.0/24", "10.2.0.0/24", "", "",
			"[] [] --pod-cidr: the cluster has given this node 10.9.1.0/24, not 10.2.0.0/24: start without --pod-cidr, or delete the node's object (kubectl delete node n) so that it is given another one"},
		{"two families", "10.9.1.0/24 fd00:9::/64", "", "", "", "[10.9.1.0/24 fd00:9::/64] [] <nil>"},
	} {
		networks, instead, err := fixed(Config{Node: "n", Chosen: prefixes(tc.chosen), Before: prefixes(tc.before),
			Held: prefixes(tc.held)}, prefixes(tc.given))
		if got := fmt.Sprint(networks, " ", instead, " ", err); got != tc.want {
			t.Errorf("%s:\n got %s\nwant %s", tc.what, got, tc.want)
		}
	}
}

// WL-20: a machine makes its node with the wish for the network that it has, waits for what it is given, and knows all
// of it while the server is away.
func TestLearn(t *testing.T) {
	c := &cluster{wherry: true, gives: "10.9.1.0/24", denies: 2} // it is starting
	config := Config{Client: c.client(t), Node: "n", Object: func() *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"a": "b"}}}
	},
		Before: prefixes("10.1.0.0/24"), File: filepath.Join(t.TempDir(), "cluster.json")}
	m, err := Learn(t.Context(), config)
	if err != nil || !m.Asked || m.Server == nil || m.Server.ClusterDNS[0] != "10.96.0.10" ||
		fmt.Sprint(m.Networks) != "[10.9.1.0/24]" {
		t.Fatalf("learnt %+v, %v", m, err)
	}
	if got := c.node.Annotations[nodeipam.RequestedNetworks]; got != "10.1.0.0/24" || c.node.Labels["a"] != "b" {
		t.Errorf("the node was made with %v and %v", c.node.Annotations, c.node.Labels)
	}
	config.Before = m.Networks
	if again, err := Learn(t.Context(), config); err != nil || c.made != 1 ||
		fmt.Sprint(again.Networks) != "[10.9.1.0/24]" {
		t.Errorf("again: %+v, %v, made %d times", again, err, c.made)
	}

	away, err := kubernetes.NewForConfig(&rest.Config{Host: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	config.Client = away
	if kept, err := Learn(t.Context(), config); err != nil || kept.Asked || kept.Server == nil ||
		kept.Server.ClusterDNS[0] != "10.96.0.10" ||
		fmt.Sprint(kept.Networks) != "[10.9.1.0/24]" {
		t.Errorf("while the server is away: %+v, %v", kept, err)
	}
	config.File = filepath.Join(t.TempDir(), "cluster.json")
	if first, err := Learn(t.Context(), config); err != nil || first.Server != nil {
		t.Errorf("a first start without a server: %+v, %v", first, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Learn(ended, config); !errors.Is(err, context.Canceled) {
		t.Errorf("a start that is given up: %v", err)
	}
}

// WL-20: a node that is there already wishes too, and has its network when it is given one; one of another cluster
// takes what that gives, and asks for nothing.
func TestLearnOfNode(t *testing.T) {
	node := func() *corev1.Node {
		return &corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
			ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	}
	c := &cluster{wherry: true, gives: "10.9.1.0/24", node: node()}
	config := Config{Client: c.client(t), Node: "n", Object: func() *corev1.Node { return &corev1.Node{} },
		Before: prefixes("10.1.0.0/24"),
		File:   filepath.Join(t.TempDir(), "cluster.json")}
	if m, err := Learn(t.Context(), config); err != nil || fmt.Sprint(m.Networks) != "[10.9.1.0/24]" ||
		c.node.Annotations[nodeipam.RequestedNetworks] == "" {
		t.Errorf("one that is there: %+v, %v", m, err)
	}
	other := &cluster{node: node()}
	config.Client = other.client(t)
	if m, err := Learn(t.Context(), config); err != nil || m.Server != nil || len(m.Networks) > 0 || !m.Asked {
		t.Errorf("of a cluster that gives none: %+v, %v", m, err)
	}
	other.node.Spec.PodCIDR = "10.7.1.0/24"
	if m, err := Learn(t.Context(), config); err != nil || m.Server != nil ||
		fmt.Sprint(m.Networks) != "[10.7.1.0/24]" {
		t.Errorf("of a cluster that gives one: %+v, %v", m, err)
	}
}
