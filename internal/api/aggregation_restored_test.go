// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	v1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/wherryproject/wherry/internal/api"
)

// An APIService that this server makes itself is there again when who deleted it has his answer; a group that had been
// given to a Service is this server's again, and stays in the list of groups. Proves WL-08.
func TestDeletedAPIServices(t *testing.T) {
	s, stop := serve(t, api.Config{DataDir: t.TempDir(), BindAddress: "127.0.0.1", EtcdPrefix: "/restored",
		EtcdServers: []string{shared.etcd.Endpoint()}})
	defer stop()
	config := configOf(t, s)
	regs := registrations(t, config).ApiregistrationV1().APIServices()
	get := func(path string) (string, error) {
		text, err := clientOf(t, config).Discovery().RESTClient().Get().AbsPath(path).
			SetHeader("Accept", "application/json").DoRaw(t.Context())
		return string(text), err
	}
	soon := func(what string, is func() bool) {
		t.Helper()
		for patience := time.Now().Add(30 * time.Second); !is(); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(patience) {
				t.Fatal(what)
			}
		}
	}
	restored := func(name string) {
		t.Helper()
		if err := regs.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if again, err := regs.Get(t.Context(), name, metav1.GetOptions{}); err != nil || again.Spec.Service != nil {
			t.Errorf("%s is not there again: %v, %v", name, again, err)
		}
	}
	restored("v1.apps")
	custom := define(t, config, widgets).group
	soon("there is none of custom resources", func() bool {
		_, err := regs.Get(t.Context(), "v1."+custom, metav1.GetOptions{})
		return err == nil
	})
	restored("v1." + custom)

	const group, path = "metrics.k8s.io", "/apis/metrics.k8s.io/v1beta1"
	if _, err := regs.Patch(t.Context(), "v1beta1."+group, types.MergePatchType,
		[]byte(`{"spec":{"service":{"namespace":"default","name":"nobody"},"insecureSkipTLSVerify":true}}`),
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	soon("the group is not given away", func() bool { _, err := get(path); return apierrors.IsServiceUnavailable(err) })
	restored("v1beta1." + group)
	soon("the group is not given back", func() bool { _, err := get(path); return err == nil })
	// What comes after it is told after it.
	if _, err := regs.Create(t.Context(), &v1.APIService{ObjectMeta: metav1.ObjectMeta{Name: "v1.later.example.com"},
		Spec: v1.APIServiceSpec{Group: "later.example.com", Version: "v1", GroupPriorityMinimum: 1, VersionPriority: 1,
			InsecureSkipTLSVerify: true, Service: &v1.ServiceReference{Namespace: "default", Name: "nobody"}}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	var list string
	soon("a later group is not listed", func() bool {
		list, _ = get("/apis")
		return strings.Contains(list, `"later.example.com"`)
	})
	if !strings.Contains(list, `"`+group+`"`) {
		t.Errorf("%s is served and not in the list of groups", group)
	}
}
