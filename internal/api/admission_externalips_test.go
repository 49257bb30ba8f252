// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestExternalIPsTakeARight proves RS-11: in a namespace that is held to a Pod Security level, who may edit it cannot
// have a service take the connections to addresses of others; with the right to that, and where nothing was decided,
// it is as in Kubernetes. ATTACK B27.
func TestExternalIPsTakeARight(t *testing.T) {
	c := client(t)
	for _, level := range []string{"", "privileged", "baseline", "restricted"} {
		t.Run("level "+level, func(t *testing.T) {
			ns := namespace(t, c)
			if level != "" {
				label := fmt.Sprintf(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":%q}}}`, level)
				if _, err := c.CoreV1().Namespaces().Patch(t.Context(), ns, types.MergePatchType, []byte(label),
					metav1.PatchOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			editor := "editor-" + ns
			bindTo(t, c, ns, editor, rbacv1.RoleRef{Kind: "ClusterRole", Name: "edit"})
			trusted := grant(t, c, ns, "trusted-"+ns, "get,create,update services", "use services/externalips")
			create := func(user, name string, ips ...string) error {
				_, err := clientOf(t, person(t, shared.srv, user)).CoreV1().Services(ns).Create(t.Context(),
					&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{
						ExternalIPs: ips, Ports: []corev1.ServicePort{{Port: 80}}}}, metav1.CreateOptions{})
				return err
			}
			fine(t, "a service without", create(editor, "plain"))
			fine(t, "who has the right", create(trusted, "trusted", "198.51.100.7"))
			if level == "" || level == "privileged" {
				fine(t, "an editor", create(editor, "taking", "198.51.100.7"))
				return
			}
			words := []string{"spec.externalIPs", level, `cannot use resource "services/externalips"`, ns}
			forbidden(t, "an editor", create(editor, "taking", "198.51.100.7"), words...)
			change := func(name, patch string) error {
				_, err := clientOf(t, person(t, shared.srv, editor)).CoreV1().Services(ns).Patch(t.Context(), name,
					types.MergePatchType, []byte(patch), metav1.PatchOptions{})
				return err
			}
			forbidden(t, "a later change", change("plain", `{"spec":{"externalIPs":["198.51.100.7"]}}`), words...)
			fine(t, "another change of one that has some", change("trusted", `{"metadata":{"labels":{"a":"b"}}}`))
			forbidden(t, "one more", change("trusted", `{"spec":{"externalIPs":["198.51.100.7","198.51.100.8"]}}`),
				words...)
			fine(t, "one less", change("trusted", `{"spec":{"externalIPs":[]}}`))
		})
	}
}
