// SPDX-License-Identifier: Apache-2.0

package hostapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// BackupParts are what a backup holds besides the store.
type BackupParts struct {
	Keys    bool // CA, keys, tokens, logins at registries
	Volumes bool // the pods' emptyDir volumes, and those of claims
}

// counted reports whether anything was written: until then an error can be the whole answer.
type counted struct {
	to http.ResponseWriter
	n  int64
}

func (c *counted) Write(p []byte) (int, error) {
	if c.n == 0 {
		c.to.Header().Set("Content-Type", "application/gzip")
		c.to.Header().Set("Trailer", errorTrailer)
	}
	n, err := c.to.Write(p)
	c.n += int64(n)
	return n, err
}

func (s *Server) backup(w http.ResponseWriter, r *http.Request) {
	out := &counted{to: w}
	err := s.Backup(r.Context(), out, BackupParts{Keys: r.FormValue("keys") == "true",
		Volumes: r.FormValue("volumes") == "true"})
	switch {
	case err == nil:
	case out.n == 0:
		refuse(w, err)
	default:
		w.Header().Set(errorTrailer, words(err))
	}
}

// Backup writes a backup of the server.
func (c *Client) Backup(ctx context.Context, to io.Writer, what BackupParts) error {
	resp, err := c.do(ctx, "GET", "/v1/backup", url.Values{"keys": {fmt.Sprint(what.Keys)},
		"volumes": {fmt.Sprint(what.Volumes)}}, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(to, resp.Body); err != nil {
		return fmt.Errorf("the server broke off: %w", err)
	}
	if msg := resp.Trailer.Get(errorTrailer); msg != "" {
		return errors.New(msg)
	}
	return nil
}
