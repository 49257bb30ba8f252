// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"

	"github.com/wherryproject/wherry/internal/api/connect"
	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/debug/wire"
)

const (
	// namesTimeout is how long nodes may take to tell the names of an image, all together.
	namesTimeout = 5 * time.Second
	// maxNames is how much a node may say.
	maxNames = 1 << 20
)

// names asks nodes what they call an image: the API server has no images of its own.
type names struct {
	stores registry.Stores
	locate connect.NodeLocator
}

// of are the names of an image at a node, or at all nodes if that is "", where the pod may come to be. A node that does
// not answer is an error: it may be the one that knows the image by a name that matters.
func (n names) of(ctx context.Context, node, id string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, namesTimeout)
	defer cancel()
	nodes := []string{node}
	if node == "" {
		r := n.stores["nodes"]
		list, err := r.List(r.Within(ctx, ""), &metainternal.ListOptions{})
		if err != nil {
			return nil, err
		}
		nodes = nil
		for _, one := range list.(*corev1.NodeList).Items {
			nodes = append(nodes, one.Name)
		}
	}
	var all []string
	for _, name := range nodes {
		some, err := n.ask(ctx, name, id)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// ask asks one node (/imageNames of package httpapi).
func (n names) ask(ctx context.Context, node, id string) ([]string, error) {
	location, transport, err := n.locate(ctx, node)
	if err != nil {
		return nil, err
	}
	at := *location
	at.Path, at.RawQuery = wire.RouteImageNames.Path(), url.Values{wire.ParamImage: {id}}.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return nil, fmt.Errorf("ask node %s: %w", node, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 512))
		return nil, fmt.Errorf("node %s: %s: %s", node, resp.Status, text)
	}
	var got struct {
		Names []string `json:"names"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxNames)).Decode(&got); err != nil {
		return nil, fmt.Errorf("node %s: cannot read the names of image %s: %w", node, id, err)
	}
	return got.Names, nil
}
