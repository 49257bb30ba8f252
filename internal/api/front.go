// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/wherryproject/wherry/internal/api/aggregation"
	"github.com/wherryproject/wherry/internal/api/customresources"
	"github.com/wherryproject/wherry/internal/api/webhooks"
	"github.com/wherryproject/wherry/internal/pki"
)

const (
	// frontUser is whom the certificate names that this server shows to other API servers. Its authority is not the
	// server's own: whoever shows that certificate may say of anybody that he asks.
	frontUser = "front-proxy-client"

	// extensionAuthentication is by which names other API servers find and may read how to know who asks.
	extensionAuthentication = "extension-apiserver-authentication"
)

// loadFront reads or makes what this server shows to other API servers.
func (s *Server) loadFront() (err error) {
	if s.who.front, err = pki.LoadOrCreate(filepath.Join(s.cfg.pki, pki.FrontProxyDir),
		"wherry-front-proxy-ca"); err != nil {
		return err
	}
	s.who.frontCert, err = pki.NewRenewing("front proxy", s.log, func() ([]byte, []byte, error) {
		return s.who.front.Client(frontUser, nil, s.cfg.CertLifetime)
	})
	return err
}

// startAggregation prepares that other API servers are made part of this one.
func (s *Server) startAggregation() error {
	o := aggregation.Options{Stores: s.data.stores, Schemes: s.data.schemes, Client: s.ways.loopback.config,
		Resolver: webhooks.NewServiceResolver(s.data.stores), Certificate: s.who.frontCert, Log: s.log}
	for _, r := range customresources.Ranks() {
		o.Local = append(o.Local, aggregation.Local{GV: r.GV, GroupPriority: int32(r.Priority)})
	}
	s.served.aggregation = aggregation.New(o)
	return nil
}

// ensureNamespaceSystem makes namespace kube-system, and in it what other API servers need to know who asks.
func (s *Server) ensureNamespaceSystem(ctx context.Context) error {
	if err := s.ensureNamespace(ctx, metav1.NamespaceSystem); err != nil {
		return err
	}
	meta := metav1.ObjectMeta{Name: extensionAuthentication, Namespace: metav1.NamespaceSystem}
	role := rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: extensionAuthentication + "-reader",
		Namespace: metav1.NamespaceSystem},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"},
			ResourceNames: []string{extensionAuthentication}, Verbs: []string{"get", "list", "watch"}}}}
	if err := s.data.stores.Ensure(ctx, s.data.schemes, "roles", metav1.NamespaceSystem, &role); err != nil {
		return err
	}
	data, err := s.extensionAuthentication()
	if err != nil {
		return err
	}
	err = s.data.stores.Ensure(ctx, s.data.schemes, "configmaps", metav1.NamespaceSystem,
		&corev1.ConfigMap{ObjectMeta: meta, Data: data})
	if err != nil {
		return err
	}
	return s.keepExtensionAuthentication(ctx, data)
}

// keepExtensionAuthentication writes how to know who asks if it has changed: authorities are rotated.
func (s *Server) keepExtensionAuthentication(ctx context.Context, data map[string]string) error {
	store := s.data.stores["configmaps"]
	ctx = store.Within(ctx, metav1.NamespaceSystem)
	change := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (
		runtime.Object, error) {
		config, ok := old.(*corev1.ConfigMap)
		if !ok {
			return nil, fmt.Errorf("the store returned a %T for a ConfigMap", old)
		}
		if equality.Semantic.DeepEqual(config.Data, data) {
			return config, nil
		}
		config = config.DeepCopy()
		config.Data = data
		return config, nil
	})
	_, _, err := store.Update(ctx, extensionAuthentication, change, rest.ValidateAllObjectFunc,
		rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("write ConfigMap %s: %w", extensionAuthentication, err)
	}
	return nil
}

// extensionAuthentication is how other API servers know who asks, by the keys that Kubernetes' library reads.
func (s *Server) extensionAuthentication() (map[string]string, error) {
	data := map[string]string{
		"client-ca-file":               string(s.who.ca.CertPEM()),
		"requestheader-client-ca-file": string(s.who.front.CertPEM()),
	}
	for key, values := range map[string][]string{
		"requestheader-allowed-names":        {frontUser},
		"requestheader-username-headers":     {"X-Remote-User"},
		"requestheader-uid-headers":          {"X-Remote-Uid"},
		"requestheader-group-headers":        {"X-Remote-Group"},
		"requestheader-extra-headers-prefix": {"X-Remote-Extra-"},
	} {
		text, err := json.Marshal(values)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		data[key] = strings.TrimSpace(string(text))
	}
	return data, nil
}
