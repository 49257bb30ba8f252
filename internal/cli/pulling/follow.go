// SPDX-License-Identifier: Apache-2.0

package pulling

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/wherryproject/wherry/internal/cli/plain"
	"github.com/wherryproject/wherry/internal/server/hostapi/socket"
)

// glance is how often a person is shown how far a pull is.
const glance = 500 * time.Millisecond

// Ask asks what a node is fetching.
type Ask func(context.Context) ([]Transfer, error)

// Node asks the server behind a host API's socket. The parts are of all its pulls.
func Node(path string) Ask {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return socket.Dial(ctx, path) }
	client := &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	return func(ctx context.Context) ([]Transfer, error) {
		var all []Transfer
		err := fetch(ctx, client, "http://wherry/v1/images/transfers", &all)
		return all, err
	}
}

// maxAnswer bounds what is read of an answer.
const maxAnswer = 8 << 20

// fetch gets a JSON document.
func fetch(ctx context.Context, client *http.Client, url string, to any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the server answered %s", resp.Status)
	}
	return json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(to)
}

// Follow shows again and again how far a node's pulls are, until ctx ends or the node does not report it; then it shows
// an empty text.
func Follow(ctx context.Context, ask Ask, show func(string)) {
	defer show("")
	tick := time.NewTicker(glance)
	defer tick.Stop()
	var all Transfers
	for {
		now, err := ask(ctx)
		if err != nil {
			return
		}
		all.See(time.Now(), now)
		show(all.String())
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Replacing writes each text in place of the one before, to a terminal itself, which has width columns.
func Replacing(w io.Writer, width int) func(string) {
	return func(text string) {
		line := []rune(plain.Text(text))
		fmt.Fprint(w, "\r\x1b[K"+string(line[:max(0, min(len(line), width-1))]))
	}
}
