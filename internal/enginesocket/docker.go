// SPDX-License-Identifier: Apache-2.0

package enginesocket

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// Docker is what speaks Docker's Engine API behind a socket.
type Docker struct {
	Socket string
	// Within bounds how long it may take to begin an answer.
	Within time.Duration
}

// Refused is the error for a request that Docker does not answer, in its own words.
type Refused struct {
	Status  int // of HTTP
	Message string
}

func (e *Refused) Error() string { return e.Message }

// maxMessage bounds what is read of a refusal.
const maxMessage = 64 << 10

// Get asks for something; names in the path are escaped by the caller. He closes the answer, which has a connection of
// its own.
func (d Docker) Get(ctx context.Context, path string, query url.Values) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://docker"+path+"?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{DisableKeepAlives: true, ResponseHeaderTimeout: d.Within,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", d.Socket)
		}}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return nil, fmt.Errorf("Docker (%s): %w", d.Socket, err) //nolint:staticcheck // a name
	}
	if resp.StatusCode == http.StatusOK {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	return nil, refusal(resp)
}

func refusal(resp *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxMessage))
	if err != nil {
		return fmt.Errorf("%s: %w", resp.Status, err)
	}
	var said struct{ Message string }
	if json.Unmarshal(text, &said) != nil || said.Message == "" {
		said.Message = resp.Status
	}
	return &Refused{resp.StatusCode, said.Message}
}

// Advise adds to an error what to do, where it says that something is not there.
func Advise(err error, what string) error {
	if refused := (*Refused)(nil); errors.As(err, &refused) && refused.Status == http.StatusNotFound {
		return fmt.Errorf("%w (%s)", err, what)
	}
	return err
}
