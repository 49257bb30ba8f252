// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"context"
	"errors"
	"net/netip"
	"sync/atomic"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/wherryproject/wherry/internal/names"
	"github.com/wherryproject/wherry/internal/names/asked"
)

// answerer answers a client's message.
type answerer struct {
	state   *state
	forward *forwarder
	turn    *atomic.Uint32
	locals  *locals
}

// waiting is how many questions may wait for other resolvers at the same time.
const waiting = 512

// asking is one question on its way.
type asking struct {
	query names.Query
	from  netip.Addr
	at    time.Time
	reply names.Reply
	limit int
}

// begin reads a message. done says that out is all that there is to say, which may be nothing.
func (a answerer) begin(packet []byte, from netip.Addr, stream bool) (q asking, out []byte, done bool) {
	if !a.state.inside(from) && !a.locals.has(from) {
		return q, nil, true
	}
	q = asking{from: from, at: time.Now()}
	var err error
	if q.query, err = names.Parse(packet); err != nil {
		if refusal, ok := errors.AsType[*names.Refusal](err); ok {
			return q, refusal.Pack(), true
		}
		return q, nil, true
	}
	q.limit = q.query.Size
	if stream {
		q.limit = names.Largest
	}
	if a.forward.probed(q.query.Name()) {
		return q, a.fail(q, dnsmessage.RCodeRefused, ""), true
	}
	var known bool
	q.reply, known = a.state.answer(names.Question{Name: q.query.Name(), Type: q.query.Question.Type,
		Turn: int(a.turn.Add(1))})
	if !known {
		return q, a.fail(q, dnsmessage.RCodeServerFailure, asked.Cluster), true
	}
	if q.reply.Outside || q.reply.Follow != "" {
		return q, nil, false
	}
	return q, a.pack(q, asked.Cluster), true
}

// pack writes the reply, and remembers it.
func (a answerer) pack(q asking, from string) []byte {
	out, err := q.reply.Pack(q.query, q.limit)
	if err != nil {
		q.reply = names.Reply{Code: dnsmessage.RCodeServerFailure}
		if out, err = q.reply.Pack(q.query, q.limit); err != nil {
			return nil
		}
	}
	if from != "" {
		a.state.remember(q.from, asked.Note{At: q.at, Took: time.Since(q.at), Name: q.query.Name(),
			Type: q.query.Question.Type, From: from, Reply: q.reply})
	}
	return out
}

func (a answerer) fail(q asking, code dnsmessage.RCode, from string) []byte {
	q.reply = names.Reply{Code: code}
	return a.pack(q, from)
}

// datagram answers over UDP: at once if that can be, else by and by.
func (a answerer) datagram(ctx context.Context, packet []byte, from netip.Addr, send func([]byte)) {
	q, out, done := a.begin(packet, from, false)
	if done {
		if out != nil {
			send(out)
		}
		return
	}
	if out, ok := a.kept(q); ok {
		send(out)
		return
	}
	select {
	case a.forward.slots <- struct{}{}:
		go func() {
			defer func() { <-a.forward.slots }()
			if out := a.ask(ctx, q, false); out != nil {
				send(out)
			}
		}()
	default:
		send(a.fail(q, dnsmessage.RCodeServerFailure, "too many questions wait"))
	}
}

// whole answers over TCP.
func (a answerer) whole(ctx context.Context, packet []byte, from netip.Addr) []byte {
	q, out, done := a.begin(packet, from, true)
	if done {
		return out
	}
	return a.ask(ctx, q, true)
}

// kept answers with what another resolver has answered before.
func (a answerer) kept(q asking) ([]byte, bool) {
	if q.reply.Follow != "" {
		return nil, false
	}
	message, ok := a.forward.kept(q.query)
	if !ok {
		return nil, false
	}
	return a.foreign(q, message, asked.Kept), true
}

// ask asks other resolvers: for the name, or for what it is an alias of.
func (a answerer) ask(ctx context.Context, q asking, stream bool) []byte {
	query := q.query
	if q.reply.Follow != "" {
		name, err := dnsmessage.NewName(q.reply.Follow + ".")
		if err != nil {
			return a.fail(q, dnsmessage.RCodeServerFailure, asked.Cluster)
		}
		query.Question.Name = name
	}
	message, from, err := a.forward.ask(ctx, query, stream || q.reply.Follow != "")
	switch {
	case err != nil && q.reply.Follow == "":
		return a.fail(q, dnsmessage.RCodeServerFailure, err.Error())
	case err != nil: // what is known is answered: some clients ask for the rest themselves
		q.reply.Code = dnsmessage.RCodeServerFailure
		return a.pack(q, err.Error())
	case q.reply.Follow == "":
		return a.foreign(q, message, from)
	}
	records, code, ok := names.Records(message)
	if !ok {
		code = dnsmessage.RCodeServerFailure
	}
	q.reply.Code = code
	for _, r := range records {
		if r.Addr.IsValid() || r.Target != "" || r.Text != "" {
			q.reply.Answers = append(q.reply.Answers, r)
		}
	}
	return a.pack(q, from)
}

// foreign hands on what another resolver has answered. What does not fit is asked for again over TCP.
func (a answerer) foreign(q asking, message []byte, from string) []byte {
	a.state.remember(q.from, asked.Note{At: q.at, Took: time.Since(q.at), Name: q.query.Name(),
		Type: q.query.Question.Type, From: from, Message: message})
	if len(message) <= q.limit {
		return message
	}
	return names.Truncated(message, q.query)
}
