// SPDX-License-Identifier: Apache-2.0

package table

import (
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func bindingColumns() []metav1.TableColumnDefinition {
	return columns(nameColumn(), text("Role", rbacv1.RoleBinding{}.SwaggerDoc()["roleRef"]), ageColumn(),
		wideText("Users", "Users in the roleBinding"), wideText("Groups", "Groups in the roleBinding"),
		wideText("ServiceAccounts", "ServiceAccounts in the roleBinding"))
}

func roleBindingPrinter() Printer {
	return Printer{Columns: bindingColumns(), Row: rowOf(func(b *rbacv1.RoleBinding, now time.Time) []any {
		return bindingCells(&b.ObjectMeta, b.RoleRef, b.Subjects, now)
	})}
}

func clusterRoleBindingPrinter() Printer {
	return Printer{Columns: bindingColumns(), Row: rowOf(func(b *rbacv1.ClusterRoleBinding, now time.Time) []any {
		return bindingCells(&b.ObjectMeta, b.RoleRef, b.Subjects, now)
	})}
}

func bindingCells(m *metav1.ObjectMeta, ref rbacv1.RoleRef, subjects []rbacv1.Subject, now time.Time) []any {
	var users, groups, accounts []string
	for _, s := range subjects {
		switch s.Kind {
		case rbacv1.UserKind:
			users = append(users, s.Name)
		case rbacv1.GroupKind:
			groups = append(groups, s.Name)
		case rbacv1.ServiceAccountKind:
			accounts = append(accounts, s.Namespace+"/"+s.Name)
		}
	}
	return []any{m.Name, ref.Kind + "/" + ref.Name, age(m.CreationTimestamp, now),
		strings.Join(users, ", "), strings.Join(groups, ", "), strings.Join(accounts, ", ")}
}
