// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/wherryproject/wherry/internal/api"
)

// RS-01: a user who lets as many requests hang as the server takes does not keep another one of the same priority level
// from being served, before any of them has timed out.
func TestHangingRequestsOfOneUser(t *testing.T) {
	serving := api.DefaultServing()
	serving.RequestTimeout = 10 * time.Minute
	s, _ := serve(t, api.Config{DataDir: t.TempDir(), BindAddress: "127.0.0.1",
		EtcdServers: []string{shared.etcd.Endpoint()}, EtcdPrefix: "/turns", Serving: &serving})
	config := configOf(t, s)
	eventually(t, config, "priority and fairness is at work", func() bool {
		resp, _ := ask(t, config, "GET", "/api/v1/namespaces", nil)
		return resp.Header.Get("X-Kubernetes-Pf-Flowschema-Uid") != ""
	})
	_, err := clientOf(t, config).RbacV1().ClusterRoleBindings().Create(t.Context(),
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "both"},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects: []rbacv1.Subject{{Kind: "User", Name: "noisy"}, {Kind: "User", Name: "quiet"}}},
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		t.Fatal(err)
	}
	const many = 600 // more than the level has seats, its own and borrowed ones
	begun := make(chan error, many)
	for range many {
		conn, err := tls.Dial("tcp", strings.TrimPrefix(s.URL(), "https://"), tlsConfig)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn,
			"POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: x\r\nImpersonate-User: noisy\r\nContent-Type: application/json\r\n"+
				"Expect: 100-continue\r\nContent-Length: 1000\r\n\r\n")
		go func() { // the server says this when the request is being served
			_, err := io.ReadFull(conn, make([]byte, 25))
			begun <- err
		}()
	}
	for range serving.MaxRequestsInFlightPerUser {
		if err := <-begun; err != nil {
			t.Fatal(err)
		}
	}
	quiet := rest.CopyConfig(config)
	quiet.Impersonate.UserName = "quiet"
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // a request waits in its queue for two and a half
	defer cancel()
	for range 20 {
		if _, err := clientOf(t, quiet).CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}
