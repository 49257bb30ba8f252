// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/nftables"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/test/e2e"
)

// state is what there is when nobody wants anything.
type state struct {
	objects []string       // of the namespace
	rules   map[string]int // sets, maps and chains of the firewall, with how many elements or rules they have
	usage   e2e.Usage
}

// String says it in a line.
func (s state) String() string {
	n := 0
	for _, c := range s.rules {
		n += c
	}
	return fmt.Sprintf("%d objects, %d elements and rules in %d sets and chains, %v", len(s.objects), n, len(s.rules),
		s.usage)
}

// resolver asks the cluster's own name server.
func (s *soak) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		dns, err := s.Client.CoreV1().Services(metav1.NamespaceSystem).Get(ctx, "kube-dns", metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort(dns.Spec.ClusterIP, "53"))
	}}
}

func (s *soak) fullName(app string) string { return app + "." + s.Namespace + ".svc.cluster.local." }

// ask asks for an application by name; the name of a service leads to its address.
func (s *soak) ask(app string) error {
	service, err := s.Client.CoreV1().Services(s.Namespace).Get(s.Context(), app, metav1.GetOptions{})
	if err != nil {
		return err
	}
	var got []string
	// it may have been made just now
	for began := time.Now(); time.Since(began) < 10*time.Second; time.Sleep(20 * time.Millisecond) {
		if got, err = s.resolver().LookupHost(s.Context(), s.fullName(app)); err == nil && len(got) == 1 &&
			got[0] == service.Spec.ClusterIP {
			return nil
		}
	}
	return fmt.Errorf("its name leads to %v (%v), not to %s", got, err, service.Spec.ClusterIP)
}

// clear deletes all, and waits until the node has nothing of it.
func (s *soak) clear() {
	s.t.Helper()
	must := func(err error) {
		s.t.Helper()
		if err != nil {
			s.t.Fatal(err)
		}
	}
	must(s.Client.AppsV1().Deployments(s.Namespace).DeleteCollection(s.Context(), metav1.DeleteOptions{},
		metav1.ListOptions{}))
	services, err := s.Client.CoreV1().Services(s.Namespace).List(s.Context(), metav1.ListOptions{})
	must(err)
	for _, service := range services.Items {
		must(s.Client.CoreV1().Services(s.Namespace).Delete(s.Context(), service.Name, metav1.DeleteOptions{}))
	}
	for i := range s.apps {
		s.apps[i] = -1
	}
	s.wanted.Store(0)
}

// patience is how long it may take until all is gone.
const patience = 2 * time.Minute

// state looks, when the last pod has gone.
func (s *soak) state() state {
	s.t.Helper()
	var now state
	var err error
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(time.Second) { // it is of many places
		if now.objects, err = s.objects(); err == nil && len(now.objects) == 0 && s.processes() == 0 &&
			len(s.onNode()) == 0 {
			break
		}
	}
	if left := s.onNode(); err != nil || len(now.objects) > 0 || s.processes() > 0 || len(left) > 0 {
		s.t.Errorf("after %s there are %d processes, %q, %q, %v", patience, s.processes(), now.objects, left, err)
	}
	if now.rules, err = s.rules(); err != nil {
		s.t.Error(err)
	}
	if now.usage, err = s.Usage(s.Context()); err != nil {
		s.t.Error(err)
	}
	return now
}

// spares are how many more descriptors, and how many times the heap, there may be after hours than after minutes: of
// clients that have just come, and of events that are kept for an hour.
const (
	spareDescriptors = 12
	spareHeap        = 2
)

// same holds what there is against what there was.
func (s *soak) same(first state) {
	s.t.Helper()
	now := s.state()
	// connections that idle are closed in time
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(time.Second) {
		if now.usage.Count() <= first.usage.Count()+spareDescriptors && now.usage.Heap <= spareHeap*first.usage.Heap &&
			equal(now.rules, first.rules) {
			break
		}
		now = s.state()
	}
	s.t.Logf("at the end: %v", now)
	if now.usage.Count() > first.usage.Count()+spareDescriptors || now.usage.Heap > spareHeap*first.usage.Heap {
		s.t.Errorf("the server holds more than after the first round: %v", first)
	}
	if !equal(now.rules, first.rules) {
		s.t.Errorf("the firewall has %v, after the first round it had %v", now.rules, first.rules)
	}
	for i := range names {
		var gone *net.DNSError
		if got, err := s.resolver().LookupHost(s.Context(), s.fullName(name(i))); !errors.As(err, &gone) ||
			!gone.IsNotFound {
			s.t.Fatalf("the name of %s, which is gone, leads to %v, %v", name(i), got, err)
		}
	}
}

func equal(a, b map[string]int) bool { return fmt.Sprint(a) == fmt.Sprint(b) }

// objects are those of the namespace that a new one does not have. Events stay for an hour.
func (s *soak) objects() ([]string, error) {
	kinds := strings.Fields(s.Kubectl("api-resources", "--verbs=list", "--namespaced", "-o", "name").Out)
	var wanted []string
	for _, k := range kinds {
		if !strings.HasPrefix(k, "events") && !strings.HasSuffix(k, "metrics.k8s.io") {
			wanted = append(wanted, k)
		}
	}
	out := s.Kubectl("get", strings.Join(wanted, ","), "-o", "name", "--ignore-not-found").Out
	var left []string
	for line := range strings.Lines(out) {
		switch line = strings.TrimSpace(line); line {
		case "", "configmap/kube-root-ca.crt", "serviceaccount/default":
		default:
			left = append(left, line)
		}
	}
	return left, nil
}

// onNode is what there is of pods on the node: folders, logs, mounts, cgroups, sandboxes.
func (s *soak) onNode() (left []string) {
	s.t.Helper()
	for _, pattern := range []string{s.DataDir + "/pods/*", s.DataDir + "/log/pods/*",
		"/sys/fs/cgroup/*/wherry-*/kubepods/*/pod*"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			s.t.Fatal(err)
		}
		left = append(left, found...)
	}
	mounts, err := os.ReadFile("/proc/mounts")
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, " "+s.DataDir+"/pods/") ||
			strings.Contains(line, s.DataDir+"/runtime/run/io.containerd.runtime.v2.task/") {
			left = append(left, strings.TrimSpace(line))
		}
	}
	client, err := s.CRI(s.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	defer client.Close()
	boxes, err := client.Runtime.ListPodSandbox(s.Context(), &runtimeapi.ListPodSandboxRequest{})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, box := range boxes.GetItems() {
		left = append(left, "sandbox "+box.GetId())
	}
	return left
}

func (s *soak) processes() (n int) {
	for _, kind := range []string{"container", "pause", "shim"} {
		pids, err := s.Processes(kind)
		if err != nil {
			s.t.Fatal(err)
		}
		n += len(pids)
	}
	return n
}

// rules counts what the firewall has for the server.
func (s *soak) rules() (map[string]int, error) {
	conn, err := nftables.New()
	if err != nil {
		return nil, err
	}
	tables, err := conn.ListTablesOfFamily(nftables.TableFamilyINet)
	if err != nil {
		return nil, err
	}
	out := map[string]int{}
	for _, table := range tables {
		if !strings.HasPrefix(table.Name, "wherry-") {
			continue
		}
		sets, err := conn.GetSets(table)
		if err != nil {
			return nil, err
		}
		for _, set := range sets {
			elements, err := conn.GetSetElements(set)
			if err != nil {
				return nil, err
			}
			out[table.Name+" "+set.Name] = len(elements)
		}
		chains, err := conn.ListChainsOfTableFamily(nftables.TableFamilyINet)
		if err != nil {
			return nil, err
		}
		for _, chain := range chains {
			if chain.Table.Name != table.Name {
				continue
			}
			rules, err := conn.GetRules(table, chain)
			if err != nil {
				return nil, err
			}
			out[table.Name+" chain "+chain.Name] = len(rules)
		}
	}
	return out, nil
}
