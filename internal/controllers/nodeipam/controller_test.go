// SPDX-License-Identifier: Apache-2.0

package nodeipam

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	core "k8s.io/client-go/testing"
)

// giving runs a test, in a bubble, with a controller that gives parts of a network.
func giving(t *testing.T, test func(t *testing.T, client *fake.Clientset)) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		client := fake.NewClientset()
		factory := informers.NewSharedInformerFactory(client, 0)
		c := New(client, factory, Config{Ranges: networks("10.9.0.0/23"),
			Avoid: func() ([]netip.Prefix, error) { return nil, nil }, Own: "own",
			OwnNetworks: networks("10.9.0.0/24")}, slog.New(slog.DiscardHandler))
		factory.Start(ctx.Done())
		done := make(chan error)
		go func() { done <- c.Run(ctx) }()
		synctest.Wait()
		test(t, client)
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		factory.Shutdown()
	})
}

func add(t *testing.T, client *fake.Clientset, name, request string) {
	t.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
	if request != "" {
		n.Annotations = map[string]string{RequestedNetworks: request}
	}
	if _, err := client.CoreV1().Nodes().Create(t.Context(), n, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

func has(t *testing.T, client *fake.Clientset, name string) string {
	t.Helper()
	n, err := client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(n.Spec.PodCIDRs, ",") + " " + n.Spec.PodCIDR
}

// WL-20: nodes get their networks as they come; one that finds no room says so, and has its place when another goes;
// what fails is tried again.
func TestController(t *testing.T) {
	giving(t, func(t *testing.T, client *fake.Clientset) {
		fails := 2
		client.PrependReactor("patch", "nodes", func(core.Action) (bool, runtime.Object, error) {
			if fails > 0 {
				fails--
				return true, nil, errors.New("etcd is slow")
			}
			return false, nil, nil
		})
		add(t, client, "a", "10.9.0.0/24")
		time.Sleep(time.Minute)
		if got := has(t, client, "a"); got != "10.9.1.0/24 10.9.1.0/24" {
			t.Errorf("a has %q", got)
		}
		add(t, client, "own", "10.9.0.0/24")
		add(t, client, "b", "")
		if own, b := has(t, client, "own"), has(t, client, "b"); own != "10.9.0.0/24 10.9.0.0/24" || b != " " {
			t.Errorf("own has %q, b %q", own, b)
		}
		time.Sleep(time.Second) // events are written by and by
		synctest.Wait()
		events, err := client.CoreV1().Events("").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var told []string
		for _, e := range events.Items {
			told = append(told, e.InvolvedObject.Name+" "+e.Reason+" "+e.Message)
		}
		text := strings.Join(told, "\n")
		for _, want := range []string{"a PodNetworkTaken 10.9.0.0/24 overlaps with 10.9.0.0/24, which node own has; the node gets 10.9.1.0/24 instead",
			"b CIDRNotAvailable all of 10.9.0.0/23"} {
			if !strings.Contains(text, want) {
				t.Errorf("no event says %q:\n%s", want, text)
			}
		}
		if err := client.CoreV1().Nodes().Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := has(t, client, "b"); got != "10.9.1.0/24 10.9.1.0/24" {
			t.Errorf("b has %q after a has gone", got)
		}
	})
}
