// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Thousands of connections on which nobody ever says a word, many times what the server may have open, from several
// addresses and to both of its ports, keep nobody out: those who come with credentials are served, from an attacker's
// address too, watches go on, and the server has files left to open (RS-01). ATTACK B12.
func TestIdleConnections(t *testing.T) {
	t.Parallel()
	world(t)
	const files = 1024
	srv := own(t, ServerOptions{Files: files, NoImages: true})
	k := inDefault(t, srv)
	watch, err := srv.Client.CoreV1().ConfigMaps(k.Namespace).Watch(t.Context(),
		metav1.ListOptions{FieldSelector: "metadata.name=seen"})
	k.must(err)
	defer watch.Stop()
	node, err := srv.Client.CoreV1().Nodes().Get(t.Context(), srv.NodeName, metav1.GetOptions{})
	k.must(err)
	api, err := url.Parse(srv.Config.Host)
	k.must(err)
	kubelet := net.JoinHostPort("127.0.0.1", strconv.Itoa(int(node.Status.DaemonEndpoints.KubeletEndpoint.Port)))

	var idle sync.WaitGroup
	for from, to := range map[string]string{"127.0.0.1": api.Host, "127.0.0.2": api.Host, "127.0.0.3": api.Host,
		"127.0.0.4": kubelet} {
		idle.Go(func() { stand(t, from, to, 1500) })
	}
	served := make(chan error, 1)
	go func() { served <- come(t.Context(), srv.Config, 10) }() // while they come
	idle.Wait()
	k.must(<-served)
	k.must(come(t.Context(), srv.Config, 10)) // when they are there

	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", srv.PID()))
	k.must(err)
	if len(open) > files*7/8 {
		t.Errorf("the server has %d of %d files open", len(open), files)
	}
	k.configMap("seen", nil)
	if e, ok := <-watch.ResultChan(); !ok || e.Type != "ADDED" {
		t.Errorf("the watch from before: %v %v", e, ok)
	}
}

// stand opens n connections to an address and leaves them alone until the test is over.
func stand(t *testing.T, from, to string, n int) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	for range n {
		c, err := d.DialContext(t.Context(), "tcp", to)
		if err != nil {
			t.Errorf("connect from %s to %s: %v", from, to, err) // nobody is turned away by the kernel
			return
		}
		t.Cleanup(func() { c.Close() })
	}
}

// come is n clients, one after the other, each with a connection of its own.
func come(ctx context.Context, config *rest.Config, n int) error {
	for i := range n {
		var own net.Dialer
		c := rest.CopyConfig(config)
		c.Dial = own.DialContext // one that no other client shares, and so no connection either
		client, err := kubernetes.NewForConfig(c)
		if err != nil {
			return err
		}
		if _, err := client.CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{}); err != nil {
			return fmt.Errorf("client %d: %w", i, err)
		}
	}
	return nil
}
