// SPDX-License-Identifier: Apache-2.0

package aggregation

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/transport"
)

// maxDocument bounds what is read of another server's list.
const maxDocument = 4 << 20

// fetch reads a small document from another server, in the name of this one. It is no part of a request that is passed
// on: whatever the other server does, or whoever asked goes away, is an error here and nothing else.
func (r *route) fetch(ctx context.Context, who user.Info, path string) ([]byte, error) {
	if err := r.closed(ctx); err != nil {
		return nil, err
	}
	ref := r.service.Spec.Service
	at, err := r.resolver.ResolveEndpoint(ref.Namespace, ref.Name, *ref.Port)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+at.Host+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	through := transport.NewAuthProxyRoundTripper(who.GetName(), who.GetUID(), who.GetGroups(), who.GetExtra(),
		r.through)
	resp, err := through.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", path, resp.Status)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument+1))
	if err == nil && len(text) > maxDocument {
		err = fmt.Errorf("%s: more than %d bytes", path, maxDocument)
	}
	return text, err
}
