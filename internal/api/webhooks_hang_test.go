// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

// RS-05: a webhook that hangs holds up only what it is asked about: while as many requests wait for it as a user may
// have, others write what it does not cover.
func TestHangingWebhook(t *testing.T) {
	c := client(t)
	ns, other := namespace(t, c), namespace(t, c)
	asked, release := make(chan struct{}, 100), make(chan struct{})
	id, url := serveHook(t, http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		asked <- struct{}{}
		select {
		case <-release:
		case <-req.Context().Done():
		}
	}), "127.0.0.1")
	letGo := sync.OnceFunc(func() { close(release) })
	t.Cleanup(letGo)
	h := at(admissionv1.WebhookClientConfig{URL: &url, CABundle: id.ca})
	h.TimeoutSeconds = ptr.To[int32](30)
	validate(t, c, ns, h)

	giveRole(t, c, ns, "edit")
	giveRole(t, c, other, "edit")
	somebody := rest.CopyConfig(adminConfig(t))
	somebody.Impersonate.UserName = "somebody"
	somebody.QPS = -1
	busy := clientOf(t, somebody)
	create := func(i int, ns string) error {
		_, err := busy.CoreV1().ConfigMaps(ns).Create(t.Context(),
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("c", i)}}, metav1.CreateOptions{})
		return err
	}
	const waiting = 15 // one less than a user may have in progress
	ended := make(chan error, waiting)
	for i := range waiting {
		go func() { ended <- create(i, ns) }()
	}
	for range waiting {
		<-asked
	}
	if err := create(0, other); err != nil { // by the same user, in another namespace
		t.Error(err)
	}
	pods := pod("beside")
	// of another kind
	if _, err := c.CoreV1().Pods(ns).Create(t.Context(), pods,
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Error(err)
	}
	select {
	case err := <-ended:
		t.Errorf("what was to wait has ended, so that this proves nothing: %v", err)
	default:
	}
	letGo() // to answer nothing
	for range waiting {
		if err := <-ended; !isRefusal(err) {
			t.Errorf("want a refusal, got %v", err)
		}
	}
}
