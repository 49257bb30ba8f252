// SPDX-License-Identifier: Apache-2.0

package staticpods

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// fetchPatience is how long a server of manifests may take for its answer.
const fetchPatience = 10 * time.Second

// fetch reads the manifest behind a URL.
func fetch(ctx context.Context, url string, header http.Header) reading {
	ctx, cancel := context.WithTimeout(ctx, fetchPatience)
	defer cancel()
	r := reading{place: url}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		r.err = err
		return r
	}
	if header != nil {
		req.Header = header.Clone()
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.err = err
		return r
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		r.err = fmt.Errorf("the server answers %s", resp.Status)
		return r
	}
	r.text, r.err = readAtMost(resp.Body)
	return r
}

// fetchAll fetches again and again.
func (k *Keeper) fetchAll(ctx context.Context) {
	tick := time.NewTicker(k.cfg.URLEvery)
	defer tick.Stop()
	for {
		select {
		case k.fetched <- fetch(ctx, k.cfg.URL, k.cfg.URLHeader):
		case <-ctx.Done():
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
