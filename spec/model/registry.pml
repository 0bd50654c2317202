/* The registry of three nodes, for Spin: joins, member_downs, change-overs, writes, kills and cuts, in every order within the
 * bounds below. `make model` checks it; docs/registry-tests.md says what that proves. What is abstracted:
 * - Time. A node acts no longer than its lease lasts at the store: a lease expires only after its holder's deadline, and only
 *   of a node that is gone, cut off or too slow.
 * - A decision is one step: the version check of the real row makes it so.
 * - The leader's stream carries its whole state, which is what a gap in it leads to. It may be late, and it may be lost.
 * - Names are a few writes; who holds which is a set of bits. */

#define N 3
#define NONE 3
#ifndef EPOCHS
#define EPOCHS 4   /* terms that are begun */
#endif
#ifndef TOKENS
#define TOKENS 5   /* joins, all in all */
#endif
#ifndef FAULTS
#define FAULTS 3   /* kills and cuts */
#endif
#ifndef QUEUE
#define QUEUE 2
#endif
#ifndef WRITES
#define WRITES 2
#endif

/* The row and the queue. */
byte leader = NONE, leader_token, epoch, assumed, committed_epoch, committed;
bool locked;
byte member[N];  /* the stored join token; 0: no member */
bool expired[N];
mtype = { join, down, left, abdicate };
chan queue = [QUEUE] of { mtype, byte, byte };  /* kind, node, token (abdicate: epoch) */

/* The nodes. */
byte token[N];    /* what it joined with; 0: it has not */
bool granted[N];  /* an answer of the store's that makes it act is under way, and its deadline has not passed */
bool acting[N];
byte authority[N];/* the epoch in which it orders writes; 0: none */
byte ready[N];    /* the epoch for which it has the names */
byte promised[N], at_epoch[N], at_seq[N], holds[N];
byte held[N];     /* as a leader: the highest write that a follower said it has */
chan stream[N] = [1] of { byte, byte, byte };  /* to a follower: epoch, seq, names */

/* The world. */
bool linked[9];   /* [from * N + to] */
bool store[N];    /* whether it reaches the store */
bool slow[N];     /* whether its heartbeats may come too late all the same */
byte let_go[N];   /* the epoch in which it has begun to let go: it does not act in that one again */
byte late_node = NONE, late_token, late_epoch, late_seq; /* a commit that was given up, and is done at some time */
byte tokens, faults, writes;
byte acknowledged;   /* writes that were, and that somebody who lives still holds */
byte granted_to[EPOCHS + 1];  /* which join token acted in an epoch */

#define LINK(a, b) linked[(a) * N + (b)]
#define LEADS(i) (leader == i && leader_token == token[i] && token[i] != 0)
#define REACHES(e, s, e2, s2) ((e) > (e2) || ((e) == (e2) && (s) >= (s2)))
#ifdef BREAK_DOWN /* a member_down that is believed though the member was heard of */
#define IS_DOWN(node, tok) (member[node] == tok)
#else
#define IS_DOWN(node, tok) (member[node] == tok && expired[node])
#endif
#define AWAY(i) (!store[i] || slow[i] || member[i] != token[i])
#define ELIGIBLE(i) (member[i] != 0 && !expired[i] && i != passed)
#define STAYS (leader != NONE && member[leader] != 0 && !expired[leader])
#define GONE(o) (member[o] != 0 && expired[o] && !(queue ?? [down, eval(o), eval(member[o])]))
#define SOURCE(i, o) (o != i && LINK(i, o) && LINK(o, i) && HAS_ALL(o))
#define BEHIND(i, o) (o != i && LINK(i, o) && !(stream[o] ?? [eval(authority[i]), eval(at_seq[i]), _]) && !(at_epoch[o] == authority[i] && at_seq[o] == at_seq[i]))
#define FOLLOWS(i, o) (o != i && LINK(o, i) && at_epoch[o] == authority[i])
#define LOST_BY_ALL (!HAS_ALL(0) && !HAS_ALL(1) && !HAS_ALL(2))
#ifdef BREAK_LET_GO /* a member that takes over what it has just given up */
#define CHOSEN(i) (store[i] && LEADS(i) && assumed < epoch)
#else
#define CHOSEN(i) (store[i] && LEADS(i) && assumed < epoch && let_go[i] != epoch)
#endif
#ifdef BREAK_LATE /* a late commit takes back what was committed since */
#define LATER(seq) seq
#else
#define LATER(seq) (committed_epoch == late_epoch && committed > seq -> committed : seq)
#endif
#ifdef BREAK_FENCE /* a leader that does not look at the row */
#define CONFIRMS(i) true
#else
#define CONFIRMS(i) (store[i] && leader == i && leader_token == token[i] && epoch == authority[i])
#endif
#ifdef BREAK_COPY /* a new leader that is content with what it has */
#define HAS_ALL(i) true
#else
#define HAS_ALL(i) REACHES(at_epoch[i], at_seq[i], committed_epoch, committed)
#endif

/* The elector: `winner` processes the head. */
inline elect(winner) {
  if
  :: leader != NONE && member[leader] != 0 && member[leader] == leader_token -> skip
  :: else ->
    if
    :: ELIGIBLE(winner) -> leader = winner
    :: !ELIGIBLE(winner) && STAYS -> skip /* it joined anew */
    :: else ->
      leader = NONE; k = 0;
      do
      :: k < N && leader == NONE && ELIGIBLE(k) -> leader = k; k++
      :: k < N && !(leader == NONE && ELIGIBLE(k)) -> k++
      :: k == N -> break
      od
    fi;
    if
    :: leader != NONE && epoch < EPOCHS -> epoch++; leader_token = member[leader]; locked = true
    :: else -> leader = NONE; leader_token = 0
    fi
  fi
}

inline process(winner) {
  queue ? kind, node, tok;
  passed = NONE;
  if
  :: kind == join -> member[node] = tok; expired[node] = false
  :: kind == down && IS_DOWN(node, tok) -> member[node] = 0; expired[node] = false
  :: kind == left && member[node] == tok -> member[node] = 0; expired[node] = false
  :: kind == abdicate && leader == node && epoch == tok -> leader = NONE; leader_token = 0; passed = node
  :: else -> skip /* stale: dropped */
  fi;
  elect(winner)
}

inline begin_acting(i) {
  assert(granted_to[epoch] == 0 || granted_to[epoch] == token[i]); /* an epoch is given to one */
  granted_to[epoch] = token[i];
  acting[i] = true;
  k = 0;
  do
  :: k < N -> assert(k == i || !acting[k]); k++                    /* one leader */
  :: k == N -> break
  od
}

inline forget(i) { /* the process is gone, and all that it had */
  token[i] = 0; granted[i] = false; acting[i] = false; authority[i] = 0; ready[i] = 0;
  at_epoch[i] = 0; at_seq[i] = 0; holds[i] = 0; held[i] = 0; let_go[i] = 0;
  acknowledged = acknowledged & (holds[0] | holds[1] | holds[2])   /* what nobody holds any more is lost, whatever one does */
}

proctype Node(byte i) {
  byte k, node, tok, passed, other, e, s, n;
  mtype kind;
  do
  /* joining and the lease */
  :: d_step { token[i] == 0 && store[i] && tokens < TOKENS && len(queue) < QUEUE ->
       tokens++; token[i] = tokens; queue ! join(i, token[i]) }
  :: d_step { store[i] && token[i] != 0 && member[i] == token[i] -> /* a heartbeat */
       expired[i] = false;
       if
       :: LEADS(i) && assumed == epoch && authority[i] == epoch -> granted[i] = true
       :: else -> skip
       fi }
  :: d_step { granted[i] && LEADS(i) && authority[i] == epoch -> granted[i] = false; begin_acting(i); k = 0 }
  :: d_step { AWAY(i) && (granted[i] || acting[i]) -> granted[i] = false; acting[i] = false } /* its deadline passes */
  :: d_step { AWAY(i) && member[i] != 0 && !expired[i] && !granted[i] && !acting[i] -> expired[i] = true } /* then its lease */
  :: d_step { store[i] && token[i] != 0 && member[i] != token[i] && !(queue ?? [join, eval(i), eval(token[i])]) ->
       token[i] = 0; authority[i] = 0; ready[i] = 0; granted[i] = false; acting[i] = false } /* thrown out: it sees it */

  /* the queue, by whoever comes first */
  :: d_step { store[i] && !locked && len(queue) > 0 -> process(i);
       kind = 0; node = 0; tok = 0; passed = 0; k = 0 }
  :: d_step { store[i] && len(queue) < QUEUE ->
       other = 0;
       do
       :: other < N && !GONE(other) -> other++
       :: other < N && GONE(other) -> queue ! down(other, member[other]); break
       :: other == N -> break
       od;
       other = 0 }

  /* letting go */
  :: d_step { acting[i] && store[i] && len(queue) < QUEUE ->
       acting[i] = false; granted[i] = false; authority[i] = 0; ready[i] = 0; let_go[i] = epoch; queue ! abdicate(i, epoch) }
  :: d_step { CHOSEN(i) && len(queue) < QUEUE -> /* it cannot come by the names */
       ready[i] = 0; let_go[i] = epoch; queue ! abdicate(i, epoch) }

  /* what it sees of the row: epochs rise, and an older authority ends */
  :: d_step { store[i] && promised[i] < epoch -> promised[i] = epoch;
       if
       :: authority[i] != 0 && authority[i] < epoch -> authority[i] = 0; acting[i] = false; granted[i] = false
       :: else -> skip
       fi }

  /* the change-over */
  :: d_step { CHOSEN(i) && ready[i] != epoch && HAS_ALL(i) -> promised[i] = epoch; ready[i] = epoch }
  :: d_step { CHOSEN(i) && ready[i] != epoch && !HAS_ALL(i) ->
       promised[i] = epoch; other = 0;
       do
       :: other < N && !SOURCE(i, other) -> other++
       :: other < N && SOURCE(i, other) ->
          at_epoch[i] = at_epoch[other]; at_seq[i] = at_seq[other]; holds[i] = holds[other]; ready[i] = epoch;
          promised[other] = epoch;
          if
          :: authority[other] != 0 && authority[other] < epoch -> authority[other] = 0; acting[other] = false; granted[other] = false
          :: else -> skip
          fi;
          break
       :: other == N -> break
       od;
       other = 0 }
  :: d_step { CHOSEN(i) && ready[i] != epoch && LOST_BY_ALL -> ready[i] = epoch } /* nobody has it any more */
  :: d_step { CHOSEN(i) && ready[i] == epoch ->
       assumed = epoch; locked = false;
       authority[i] = epoch; at_epoch[i] = epoch; at_seq[i] = 0; held[i] = 0;
       assert((holds[i] & acknowledged) == acknowledged) } /* nothing that was acknowledged is lost */

  /* writes: ordered, sent, held by another, confirmed by the row, acknowledged */
  :: d_step { acting[i] && authority[i] != 0 && writes < WRITES ->
       writes++; at_seq[i]++; holds[i] = holds[i] | (1 << (writes - 1)) }
  :: d_step { authority[i] != 0 && WRITES > 0 ->
       other = 0;
       do
       :: other < N && !BEHIND(i, other) -> other++
       :: other < N && BEHIND(i, other) ->
          if
          :: len(stream[other]) > 0 -> stream[other] ? e, s, n; e = 0; s = 0; n = 0 /* lost on the way */
          :: else -> skip
          fi;
          stream[other] ! authority[i], at_seq[i], holds[i]; break
       :: other == N -> break
       od;
       other = 0 }
  :: d_step { len(stream[i]) > 0 -> stream[i] ? e, s, n;
       if
       :: token[i] != 0 && e >= promised[i] && REACHES(e, s, at_epoch[i], at_seq[i]) && authority[i] < e ->
          promised[i] = e; at_epoch[i] = e; at_seq[i] = s; holds[i] = n
       :: else -> skip /* of an older epoch: refused */
       fi;
       e = 0; s = 0; n = 0 }
  :: d_step { authority[i] != 0 ->
       other = 0;
       do
       :: other < N ->
          if
          :: other != i && LINK(other, i) && at_epoch[other] == authority[i] && at_seq[other] > held[i] -> held[i] = at_seq[other]
          :: else -> skip
          fi;
          other++
       :: other == N -> break
       od;
       other = 0 }
  :: d_step { authority[i] != 0 && CONFIRMS(i) && held[i] > 0 && !(committed_epoch == epoch && committed >= held[i]) ->
       committed_epoch = epoch; committed = held[i];
       /* The writes of this term up to there: with two writes in all, those that this node holds when all are held. */
       if
       :: held[i] == at_seq[i] -> acknowledged = acknowledged | holds[i]
       :: else -> skip
       fi }

  :: d_step { authority[i] != 0 && CONFIRMS(i) && committed_epoch != epoch && WRITES > 0 &&
         (FOLLOWS(i, 0) || FOLLOWS(i, 1) || FOLLOWS(i, 2)) -> /* what the term began with */
       committed_epoch = epoch; committed = 0;
       if
       :: at_seq[i] == 0 -> acknowledged = acknowledged | holds[i]
       :: else -> skip
       fi }
#ifdef BREAK_BASE /* a leader that says yes to a name that was there when it began, before that is committed */
  :: d_step { acting[i] && authority[i] != 0 && at_seq[i] == 0 && (holds[i] & acknowledged) != holds[i] ->
       acknowledged = acknowledged | holds[i] }
#endif

  /* a commit that the store does after it was given up, whatever has come since */
  :: d_step { faults < FAULTS && late_node == NONE && authority[i] != 0 && CONFIRMS(i) && held[i] < at_seq[i] ->
       faults++; late_node = i; late_token = token[i]; late_epoch = authority[i]; late_seq = held[i] }
  :: d_step { late_node == i ->
       if
       :: leader == i && leader_token == late_token && epoch == late_epoch ->
          committed = LATER(late_seq); committed_epoch = late_epoch
       :: else -> skip
       fi;
       late_node = NONE; late_token = 0; late_epoch = 0; late_seq = 0 }

  /* what goes wrong */
  :: d_step { faults < FAULTS && token[i] != 0 -> faults++; forget(i) }
  :: d_step { faults < FAULTS && store[i] -> faults++; store[i] = false }
  :: d_step { faults < FAULTS && LINK(i, (i + 1) % N) -> faults++; LINK(i, (i + 1) % N) = false; LINK((i + 1) % N, i) = false }
  :: d_step { faults < FAULTS && store[i] && !slow[i] -> faults++; slow[i] = true }
  :: d_step { !store[i] -> store[i] = true }
  :: d_step { slow[i] -> slow[i] = false }
  :: d_step { !LINK(i, (i + 1) % N) -> LINK(i, (i + 1) % N) = true; LINK((i + 1) % N, i) = true }
  od
}

/* The lock ends by itself. */
proctype Clock() {
  do
  :: d_step { locked -> locked = false }
  od
}

init {
  byte i = 0;
  atomic {
    do
    :: i < 9 -> linked[i] = true; i++
    :: i == 9 -> break
    od;
    store[0] = true; store[1] = true; store[2] = true;
#ifndef EMPTY
    /* All three have joined, and the first one leads. */
    token[0] = 1; token[1] = 2; token[2] = 3; tokens = 3;
    member[0] = 1; member[1] = 2; member[2] = 3;
    leader = 0; leader_token = 1; epoch = 1; assumed = 1; committed_epoch = 1;
    i = 0;
    do
    :: i < N -> promised[i] = 1; at_epoch[i] = 1; i++
    :: i == N -> break
    od;
    ready[0] = 1; authority[0] = 1;
#endif
    run Node(0); run Node(1); run Node(2); run Clock()
  }
}
