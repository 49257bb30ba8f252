// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"

	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/apis/certificates"

	"github.com/wherryproject/wherry/internal/api/upstream"
)

// servingSigner is the signer of this server's own certificate, by the name that Kubernetes has for it.
const servingSigner = "kubernetes.io/kube-apiserver-serving"

// ensureTrustBundle tells pods whom to trust when they talk to this server, under the name that Kubernetes' controller
// manager would give it. Those of an authority that was replaced go.
func (s *Server) ensureTrustBundle(ctx context.Context) error {
	pem := s.who.ca.CertPEM()
	sum := sha256.Sum256(pem)
	name := fmt.Sprintf("%s:%x", strings.ReplaceAll(servingSigner, "/", ":"), sum[:12])
	if err := s.data.stores.Ensure(ctx, s.data.schemes, upstream.TrustBundles, "", &certificates.ClusterTrustBundle{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       certificates.ClusterTrustBundleSpec{SignerName: servingSigner, TrustBundle: string(pem)},
	}); err != nil {
		return err
	}
	store := s.data.stores[upstream.TrustBundles]
	ctx = store.Within(ctx, "")
	list, err := store.List(ctx, &metainternal.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.signerName", servingSigner)})
	if err != nil {
		return err
	}
	for i := range list.(*certificates.ClusterTrustBundleList).Items {
		if old := &list.(*certificates.ClusterTrustBundleList).Items[i]; old.Name != name {
			if _, _, err := store.Delete(ctx, old.Name, rest.ValidateAllObjectFunc,
				&metav1.DeleteOptions{}); err != nil {
				return err
			}
		}
	}
	return nil
}
