// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// awaitRange waits until a ServiceCIDR says of itself that it is ready, that it is not, or is gone ("").
func (k *kit) awaitRange(name string, want metav1.ConditionStatus) {
	k.t.Helper()
	ranges := k.Client.NetworkingV1().ServiceCIDRs()
	w, err := ranges.Watch(k.ctx(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	k.must(err)
	defer w.Stop()
	patience := time.After(20 * time.Second)
	for {
		o, err := ranges.Get(k.ctx(), name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) && want == "" {
			return
		}
		k.must(err)
		if c := meta.FindStatusCondition(o.Status.Conditions, "Ready"); want != "" && c != nil && c.Status == want {
			return
		}
		select {
		case <-w.ResultChan():
		case <-patience:
			k.t.Fatalf("ServiceCIDR %s: %+v", name, o)
		}
	}
}

// WL-25, WL-12: services in a further range of addresses are reached as all others, from pods, from the machine and by
// node ports, also after the server was killed; who sends to an address there that no service has is refused; the range
// goes when its last service has.
func TestServiceRange(t *testing.T) {
	t.Parallel()
	srv := own(t, ServerOptions{Args: []string{"--service-cidr", "10.98.87.0/24"}})
	k := kitOn(t, srv)
	web := k.web("a")
	k.up(`
metadata: {name: host}
spec: {hostNetwork: true, containers: [{name: c, command: [sh, -c, IDLE]}]}
`)
	_, err := k.Client.NetworkingV1().ServiceCIDRs().Create(k.ctx(),
		&networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: "further"},
			Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"203.0.113.0/28"}}}, metav1.CreateOptions{})
	k.must(err)
	k.awaitRange("further", metav1.ConditionTrue)
	nobody := "timeout 5 wget -qO- http://203.0.113.9/ 2>&1 | grep -o refused"
	nobodyThere := func() {
		t.Helper()
		k.asks("http://203.0.113.9/", refused)
		k.says("a", "c", nobody, "refused")
		k.says("host", "c", nobody, "refused")
	}
	nobodyThere()

	node := 30000 + FreePort(t)%2768
	s := k.service(fmt.Sprintf(`
metadata: {name: web}
spec: {type: NodePort, clusterIP: 203.0.113.7, ports: [{name: http, port: 80, nodePort: %d}]}
`, node))
	k.leads(s, map[string]int32{"http": 8080}, web)
	url := "http://203.0.113.7/hostname"
	reach := func() {
		t.Helper()
		k.asks(url, says("a"))
		k.asks(fmt.Sprintf("http://127.0.0.1:%d/hostname", node), says("a"))
		for _, from := range []string{"a", "host"} {
			k.says(from, "c", "wget -qO- "+url, "a")
		}
	}
	reach()
	k.must(k.Client.NetworkingV1().ServiceCIDRs().Delete(k.ctx(), "further", metav1.DeleteOptions{}))
	k.awaitRange("further", metav1.ConditionFalse)
	reach()
	srv.Kill()
	k.must(srv.Start(k.ctx()))
	k.awaitRange("further", metav1.ConditionFalse)
	reach()
	nobodyThere()
	k.must(k.Client.CoreV1().Services(k.Namespace).Delete(k.ctx(), "web", metav1.DeleteOptions{}))
	k.awaitRange("further", "")
	objects, err := k.Client.NetworkingV1().IPAddresses().List(k.ctx(), metav1.ListOptions{})
	k.must(err)
	services, err := k.Client.CoreV1().Services("").List(k.ctx(), metav1.ListOptions{})
	k.must(err)
	if len(objects.Items) != len(services.Items) || len(services.Items) < 1 {
		t.Errorf("%d IPAddresses of %d services", len(objects.Items), len(services.Items))
	}
}
