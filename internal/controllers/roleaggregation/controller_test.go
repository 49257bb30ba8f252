// SPDX-License-Identifier: Apache-2.0

package roleaggregation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// TestRefusedRole: rights that are taken away are taken away, though other aggregated roles cannot be written.
func TestRefusedRole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		aggregated := func(name string) *rbacv1.ClusterRole {
			return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name},
				AggregationRule: &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"join": "yes"}}}},
				Rules:           []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}}}
		}
		roles := []runtime.Object{aggregated("good")}
		for i := range 9 {
			roles = append(roles, aggregated(fmt.Sprint("bad", i)))
		}
		client := fake.NewClientset(roles...)
		client.PrependReactor("update", "clusterroles", func(a clienttesting.Action) (bool, runtime.Object, error) {
			role := a.(clienttesting.UpdateAction).GetObject().(*rbacv1.ClusterRole)
			return strings.HasPrefix(role.Name, "bad"), nil, errors.New("a webhook is against it")
		})
		factory := informers.NewSharedInformerFactory(client, 0)
		ctx, cancel := context.WithCancel(t.Context())
		c := New(client, factory, slog.New(slog.DiscardHandler))
		factory.Start(ctx.Done())
		factory.WaitForCacheSync(ctx.Done())
		if err := c.sync(ctx, all); err == nil || !strings.Contains(err.Error(), "bad8") {
			t.Errorf("what could not be written is not said, and not tried again: %v", err)
		}
		good, err := client.RbacV1().ClusterRoles().Get(ctx, "good", metav1.GetOptions{})
		if err != nil || len(good.Rules) != 0 {
			t.Errorf("the rights are still there: %+v, %v", good, err)
		}
		cancel()
		if err := c.Run(ctx); err != nil { // ends its queue
			t.Error(err)
		}
		factory.Shutdown()
	})
}
