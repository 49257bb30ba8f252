// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestSystemPriorityTakesARight proves RS-11: pods that are never evicted are made in kube-system, by administrators,
// or with the right to use the class; by nobody else who may create pods, whatever way the class comes into the pod.
// The right may be that of the pod's service account, whoever makes the pod. ATTACK A30.
func TestSystemPriorityTakesARight(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	eve := grant(t, c, ns, "eve-"+ns, "create,get pods")
	ann := grant(t, c, ns, "ann-"+ns, "create,get pods",
		"use priorityclasses.scheduling.k8s.io system-cluster-critical")
	sys := grant(t, c, metav1.NamespaceSystem, "sys-"+ns, "create,get,delete pods")
	accounts := c.CoreV1().ServiceAccounts(metav1.NamespaceSystem)
	if _, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: ns}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		fine(t, "clean up", errors.Join(accounts.Delete(ctx, ns, metav1.DeleteOptions{}),
			c.RbacV1().RoleBindings(metav1.NamespaceSystem).Delete(ctx, sys, metav1.DeleteOptions{}),
			c.RbacV1().Roles(metav1.NamespaceSystem).Delete(ctx, sys, metav1.DeleteOptions{})))
	})
	of := func(class string) *corev1.Pod {
		p := pod("p-" + class)
		p.GenerateName, p.Name = p.Name+"-", ""
		p.Spec.PriorityClassName = class
		return p
	}
	create := func(user, in, class string) error {
		p := of(class)
		if in == metav1.NamespaceSystem {
			p.Spec.ServiceAccountName = ns
		}
		_, err := clientOf(t, person(t, shared.srv, user)).CoreV1().Pods(in).Create(t.Context(), p,
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	for _, class := range []string{"system-node-critical", "system-cluster-critical"} {
		forbidden(t, "without the right", create(eve, ns, class), "pods of priority class "+class+" are never evicted",
			"kube-system", `user "`+eve+`" cannot use resource "priorityclasses" named "`+class+
				`" in API group "scheduling.k8s.io" in the namespace "`+ns+`"`)
	}
	fine(t, "no class", create(eve, ns, ""))
	fine(t, "the class of the right", create(ann, ns, "system-cluster-critical"))
	forbidden(t, "another class than that of the right", create(ann, ns, "system-node-critical"), "never evicted")
	forbidden(t, "a right to pods in kube-system is none elsewhere", create(sys, ns, "system-node-critical"))
	agent := "agent"
	if _, err := c.CoreV1().ServiceAccounts(ns).Create(t.Context(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: agent}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	grant(t, c, ns, "system:serviceaccount:"+ns+":"+agent,
		"use priorityclasses.scheduling.k8s.io system-node-critical")
	as := func(account, class string) error {
		p := of(class)
		p.Spec.ServiceAccountName = account
		_, err := clientOf(t, person(t, shared.srv, eve)).CoreV1().Pods(ns).Create(t.Context(), p,
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	fine(t, "the right of the pod's service account", as(agent, "system-node-critical"))
	forbidden(t, "another class than that of the account's right", as(agent, "system-cluster-critical"),
		`nor can service account "agent"`)
	forbidden(t, "the right of another account", as("default", "system-node-critical"),
		`nor can service account "default"`)
	_, err := c.CoreV1().Pods(ns).Create(t.Context(), of("system-node-critical"), metav1.CreateOptions{})
	fine(t, "an administrator", err)
	fine(t, "in kube-system", create(sys, metav1.NamespaceSystem, "system-node-critical"))
}
