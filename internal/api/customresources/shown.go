// SPDX-License-Identifier: Apache-2.0

package customresources

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// aggregatedType is the media type of the aggregated discovery document.
const aggregatedType = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// customDocuments reads the server's own documents, behind authentication and authorisation.
type customDocuments struct {
	handler func() http.Handler // made after those who ask
	own     map[string]bool     // groups whose discovery no custom resource decides
}

// show says which definitions a document shows.
func (c customDocuments) show(doc document, definitions []*lateDefinition) map[*lateDefinition]bool {
	found := map[*lateDefinition]bool{}
	switch doc {
	case discoveryDocument:
		var aggregated apidiscoveryv2.APIGroupDiscoveryList
		var plain metav1.APIGroupList
		if json.Unmarshal(c.get("/apis", aggregatedType), &aggregated) != nil ||
			json.Unmarshal(c.get("/apis", "application/json"), &plain) != nil {
			return nil
		}
		for _, d := range definitions {
			found[d] = inAggregated(&aggregated, d) && (c.own[d.group] || inPlain(&plain, d))
		}
	case openAPIv2Document:
		text := c.get("/openapi/v2", "application/json")
		for _, d := range definitions {
			found[d] = !slices.ContainsFunc(d.versions, func(v string) bool { return !bytes.Contains(text, d.path(v)) })
		}
	case openAPIv3Document:
		for _, d := range definitions {
			found[d] = !slices.ContainsFunc(d.versions, func(v string) bool {
				return !bytes.Contains(c.get("/openapi/v3/apis/"+d.group+"/"+v, "application/json"), d.path(v))
			})
		}
	}
	return found
}

// get is the text of a document, empty if it cannot be read (now).
func (c customDocuments) get(path, as string) []byte {
	req, err := http.NewRequest(http.MethodGet, "https://localhost"+path, http.NoBody)
	if err != nil {
		return nil // of a name that is no part of a path: there is none
	}
	req.Header.Set("Accept", as)
	answer := &kept{header: http.Header{}, code: http.StatusOK}
	c.handler().ServeHTTP(answer, req)
	if answer.code != http.StatusOK {
		return nil
	}
	return answer.body.Bytes()
}

// kept is an answer that stays here.
type kept struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (k *kept) Header() http.Header { return k.header }

// WriteHeader implements http.ResponseWriter.
func (k *kept) WriteHeader(code int) { k.code = code }

// Write implements http.ResponseWriter.
func (k *kept) Write(p []byte) (int, error) { return k.body.Write(p) }

// path is the key that the resource has in an OpenAPI document.
func (d *lateDefinition) path(version string) []byte {
	return []byte(`"/apis/` + d.group + "/" + version + "/" + d.plural + `"`)
}

func inAggregated(list *apidiscoveryv2.APIGroupDiscoveryList, d *lateDefinition) bool {
	var there []string
	for _, g := range list.Items {
		if g.Name != d.group {
			continue
		}
		for _, v := range g.Versions {
			if slices.ContainsFunc(v.Resources,
				func(r apidiscoveryv2.APIResourceDiscovery) bool { return r.Resource == d.plural }) {
				there = append(there, v.Version)
			}
		}
	}
	return containsAll(there, d.versions)
}

func inPlain(list *metav1.APIGroupList, d *lateDefinition) bool {
	var there []string
	for _, g := range list.Groups {
		if g.Name != d.group {
			continue
		}
		for _, v := range g.Versions {
			there = append(there, v.Version)
		}
	}
	return containsAll(there, d.versions)
}

func containsAll(have, want []string) bool {
	return !slices.ContainsFunc(want, func(w string) bool { return !slices.Contains(have, w) })
}
