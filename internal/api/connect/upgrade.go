// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	utilproxy "k8s.io/apimachinery/pkg/util/proxy"
	"k8s.io/streaming/pkg/httpstream"
)

// upgrades hands requests that ask for another protocol on to one place, and with its consent the connection. The
// library's proxy does so too, but takes the client's connection over for refusals as well, which would then be on
// record as 101; it closes both sides as soon as one is at its end, so that the last of what was said may be lost; and
// it waits for an answer although the client has left.
type upgrades struct {
	location  *url.URL
	client    bool // the client's query goes on, and the slash at the end of its path
	transport http.RoundTripper
	errors    utilproxy.ErrorResponder
	plain     http.Handler // serves requests that do not ask for it
}

// ServeHTTP implements http.Handler.
func (u *upgrades) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if !httpstream.IsUpgradeRequest(req) {
		u.plain.ServeHTTP(w, req)
		return
	}
	out := utilnet.CloneRequest(req)
	utilnet.AppendForwardedForHeader(out)
	to := *u.location
	if u.client {
		to.RawQuery = req.URL.RawQuery
		if strings.HasSuffix(req.URL.Path, "/") && !strings.HasSuffix(to.Path, "/") {
			to.Path += "/"
		}
	}
	out.URL = &to
	asked, err := dialAndAsk(u.transport, out)
	if err != nil {
		u.errors.Error(w, req, err)
		return
	}
	switch {
	case asked.Granted():
		err = asked.Join(w, 0)
	case asked.StatusCode >= http.StatusBadRequest:
		asked.Refuse(w)
	default:
		asked.Close()
		err = fmt.Errorf("invalid upgrade response: status code %d", asked.StatusCode)
	}
	if err != nil {
		u.errors.Error(w, req, err)
	}
}
