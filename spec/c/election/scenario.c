#include "scenario.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define CANDIDATES 4
#define LINE_MAX_SIZE 512

/* --- durations -------------------------------------------------------------------------------- */

static void print_ns(FILE *out, int64_t ns)
{
    char text[40];
    if (ns == TIME_NEVER) {
        (void)fputs("never", out);
        return;
    }
    int length = snprintf(text, sizeof(text), "%lld.%09lld", (long long)(ns / NS_PER_S),
                          (long long)(ns % NS_PER_S));
    while (text[length - 1] == '0')
        length--;
    if (text[length - 1] == '.')
        length--;
    (void)fprintf(out, "%.*ss", length, text);
}

static void print_instant(FILE *out, const char *key, int64_t at_ns, int64_t now_ns)
{
    (void)fprintf(out, " %s=", key);
    if (at_ns == TIME_NEVER) {
        print_ns(out, at_ns);
        return;
    }
    (void)fputc(at_ns < now_ns ? '-' : '+', out);
    print_ns(out, at_ns < now_ns ? now_ns - at_ns : at_ns - now_ns);
}

static int64_t read_ns(const char *text)
{
    char *end;
    long long whole = strtoll(text, &end, 10);
    int64_t ns = whole * NS_PER_S;
    if (strncmp(text, "never", 5) == 0)
        return TIME_NEVER;
    if (*end == '.') {
        int64_t unit = NS_PER_S / 10;
        for (end++; isdigit((unsigned char)*end); end++, unit /= 10)
            ns += (*end - '0') * unit;
    }
    return strncmp(end, "ms", 2) == 0 ? ns / 1000 : strncmp(end, "us", 2) == 0 ? ns / 1000000 : ns;
}

/* --- what stands in the lines ----------------------------------------------------------------- */

static void print_duration(FILE *out, const char *key, int64_t ns)
{
    (void)fprintf(out, " %s=", key);
    print_ns(out, ns);
}

void scenario_print_event(FILE *out, const struct election_event *event, int64_t after_ns)
{
    if (after_ns > 0) {
        (void)fputc('+', out);
        print_ns(out, after_ns);
        (void)fputc(' ', out);
    }
    (void)fputs(election_event_name(event->type), out);
    switch (event->type) {
    case ELECTION_EVENT_GRANTED:
        if (event->grant.ttl_ns > 0)
            print_duration(out, "ttl", event->grant.ttl_ns);
        print_duration(out, "refresh", event->grant.refresh_ns);
        (void)fprintf(out, " epoch=%llu", (unsigned long long)event->grant.epoch);
        if (event->grant.cool_down_ns > 0)
            print_duration(out, "cool_down", event->grant.cool_down_ns);
        break;
    case ELECTION_EVENT_DENIED:
        if (event->denial.expires_ns >= 0)
            print_duration(out, "expires", event->denial.expires_ns);
        if (event->denial.retry_ns > 0)
            print_duration(out, "retry", event->denial.retry_ns);
        if (event->denial.epoch > 0)
            (void)fprintf(out, " epoch=%llu", (unsigned long long)event->denial.epoch);
        (void)fputs(event->denial.amnesia ? " amnesia" : "", out);
        (void)fputs(event->denial.hears ? " hears" : "", out);
        (void)fputs(event->denial.nobody ? " nobody" : "", out);
        break;
    case ELECTION_EVENT_UNKNOWN:
        (void)fputs(event->unknown.answered ? " answered" : "", out);
        if (event->unknown.retry_ns > 0)
            print_duration(out, "retry", event->unknown.retry_ns);
        break;
    case ELECTION_EVENT_BARRED:
    case ELECTION_EVENT_ALLOWED:
        (void)fprintf(out, " %s", election_bar_name(event->bar));
        break;
    case ELECTION_EVENT_CHILD_GONE:
        (void)fputs(event->child.failed ? " failed" : "", out);
        (void)fputs(event->child.unstartable ? " unstartable" : "", out);
        (void)fputs(event->child.untold ? " untold" : "", out);
        (void)fputs(event->child.killed ? " killed" : "", out);
        (void)fputs(event->child.kept ? " kept" : "", out);
        break;
    default:
        break;
    }
}

static void print_instants(FILE *out, const struct election_action *action, int64_t now_ns)
{
    print_instant(out, "stop", action->stop_at_ns, now_ns);
    print_instant(out, "kill", action->kill_at_ns, now_ns);
    print_instant(out, "deadline", action->deadline_ns, now_ns);
}

void scenario_print_action(FILE *out, const struct election_action *action, int64_t now_ns)
{
    (void)fprintf(out, "    %s", election_action_name(action->type));
    switch (action->type) {
    case ELECTION_ACTION_CALL_CLAIM:
    case ELECTION_ACTION_CALL_REFRESH:
    case ELECTION_ACTION_CALL_INFO:
    case ELECTION_ACTION_CALL_ABDICATE:
        (void)fprintf(out, " #%u", (unsigned)action->attempt);
        print_instant(out, "until", action->until_ns, now_ns);
        break;
    case ELECTION_ACTION_ARM_TIMER:
        print_instant(out, "at", action->at_ns, now_ns);
        break;
    case ELECTION_ACTION_SET_DEADLINE:
        print_instants(out, action, now_ns);
        break;
    case ELECTION_ACTION_START_CHILD:
        if (action->role == ELECTION_ROLE_FOLLOWER)
            (void)fputs(" follower", out);
        if (action->role == ELECTION_ROLE_LEADER || action->stop_at_ns != TIME_NEVER ||
            action->kill_at_ns != TIME_NEVER || action->deadline_ns != TIME_NEVER)
            print_instants(out, action, now_ns);
        break;
    case ELECTION_ACTION_STOP_CHILD:
        print_instant(out, "kill", action->kill_at_ns, now_ns);
        break;
    case ELECTION_ACTION_RUN_WON:
        (void)fprintf(out, " epoch=%llu", (unsigned long long)action->epoch);
        break;
    case ELECTION_ACTION_RUN_LOST:
        (void)fprintf(out, " %s", election_reason_name(action->reason));
        print_instant(out, "until", action->until_ns, now_ns);
        break;
    case ELECTION_ACTION_EMIT:
        (void)fprintf(out, " %s", election_notice_name(action->notice));
        if (action->reason != ELECTION_REASON_NONE)
            (void)fprintf(out, " %s", election_reason_name(action->reason));
        if (action->notice == ELECTION_NOTICE_BARRED || action->notice == ELECTION_NOTICE_ALLOWED)
            (void)fprintf(out, " %s", election_bar_name(action->bar));
        break;
    default:
        break;
    }
    (void)fputc('\n', out);
}

/* --- options ---------------------------------------------------------------------------------- */

struct election_config scenario_config(void)
{
    return (struct election_config){.retry_ns = NS_PER_S,
                                    .call_timeout_ns = 5 * NS_PER_S,
                                    .lost_timeout_ns = 5 * NS_PER_S,
                                    .monitor_leader = true,
                                    .has_child = true,
                                    .has_abdicate = true,
                                    .restart_max = 2,
                                    .restart_within_ns = 60 * NS_PER_S,
                                    .restart_backoff_first_ns = 100 * NS_PER_MS,
                                    .restart_backoff_most_ns = 5 * NS_PER_S};
}

struct switch_option {
    const char *name;
    size_t offset;
};
#define SWITCH(name, field)                                                                        \
    {                                                                                              \
        name, offsetof(struct election_config, field)                                              \
    }
static const struct switch_option switches[] = {
    SWITCH("monitor_leader", monitor_leader),
    SWITCH("child", has_child),
    SWITCH("follower_child", has_follower_child),
    SWITCH("abdicate", has_abdicate),
    SWITCH("leaves", leaves),
    SWITCH("real_time", timing.real_time),
    SWITCH("namespaced", timing.namespaced),
};
static const struct switch_option durations[] = {
    SWITCH("claim_delay", claim_delay_ns),       SWITCH("retry", retry_ns),
    SWITCH("cool_down", cool_down_ns),           SWITCH("call_timeout", call_timeout_ns),
    SWITCH("lost_timeout", lost_timeout_ns),     SWITCH("stop_timeout", timing.stop_timeout_ns),
    SWITCH("restart_within", restart_within_ns), SWITCH("lease", timing.lease_ns),
    SWITCH("stand_back", stand_back_ns),
};
#define COUNT(list) (sizeof(list) / sizeof(*(list)))

static bool *switch_of(struct election_config *config, const struct switch_option *option)
{
    return (bool *)((char *)config + option->offset);
}

static int64_t *duration_of(struct election_config *config, const struct switch_option *option)
{
    return (int64_t *)((char *)config + option->offset);
}

void scenario_print_config(FILE *out, const struct election_config *config,
                           const struct election_config *usual)
{
    struct election_config mine = *config, theirs = *usual;
    (void)fputs("with", out);
    for (size_t i = 0; i < COUNT(switches); i++)
        if (*switch_of(&mine, &switches[i]) != *switch_of(&theirs, &switches[i]))
            (void)fprintf(out, " %s=%s", switches[i].name,
                          *switch_of(&mine, &switches[i]) ? "yes" : "no");
    for (size_t i = 0; i < COUNT(durations); i++)
        if (*duration_of(&mine, &durations[i]) != *duration_of(&theirs, &durations[i]))
            print_duration(out, durations[i].name, *duration_of(&mine, &durations[i]));
    (void)fputc('\n', out);
}

static bool read_option(struct election_config *config, const char *word)
{
    const char *value = strchr(word, '=');
    if (value == NULL)
        return false;
    size_t length = (size_t)(value++ - word);
    for (size_t i = 0; i < COUNT(switches); i++)
        if (strlen(switches[i].name) == length && strncmp(word, switches[i].name, length) == 0) {
            *switch_of(config, &switches[i]) = strncmp(value, "yes", 3) == 0;
            return true;
        }
    for (size_t i = 0; i < COUNT(durations); i++)
        if (strlen(durations[i].name) == length && strncmp(word, durations[i].name, length) == 0) {
            *duration_of(config, &durations[i]) = read_ns(value);
            return true;
        }
    return false;
}

/* --- what can be asked ------------------------------------------------------------------------ */

/* `look`: what status and the Lua API show of a candidate. */
static void print_look(FILE *out, const struct election *election, int64_t now_ns)
{
    struct election_view view = election_look(election);
    (void)fprintf(out, "    %s%s%s epoch=%llu terms=%llu", election_phase_name(view.phase),
                  view.acting ? " acting" : "", view.ending ? " ending" : "",
                  (unsigned long long)view.epoch, (unsigned long long)view.terms);
    print_instant(out, "since", view.since_ns, now_ns);
    print_instant(out, "claim", view.next_claim_ns, now_ns);
    if (view.acts_at_ns != TIME_NEVER)
        print_instant(out, "acts", view.acts_at_ns, now_ns);
    if (view.deadline_ns != TIME_NEVER || view.stop_at_ns != TIME_NEVER ||
        view.kill_at_ns != TIME_NEVER) {
        print_instant(out, "stop", view.stop_at_ns, now_ns);
        print_instant(out, "kill", view.kill_at_ns, now_ns);
        print_instant(out, "deadline", view.deadline_ns, now_ns);
    }
    for (int bar = 0; bar < ELECTION_BAR_COUNT; bar++)
        if ((view.bars & 1u << bar) != 0)
            (void)fprintf(out, " barred=%s", election_bar_name((enum election_bar)bar));
    if (view.last_reason != ELECTION_REASON_NONE)
        (void)fprintf(out, " reason=%s", election_reason_name(view.last_reason));
    (void)fputc('\n', out);
}

/* `schedule [ttl=…] [refresh=…]`: the instants that such a grant is laid out to, from when it was
 * asked for, and how they are explained. */
static bool print_schedule(FILE *out, const struct election_config *config, char *words)
{
    struct election_schedule laid_out;
    struct crown_error err;
    int64_t ttl_ns = 0, refresh_ns = TIME_NEVER;
    char text[1024], *line = text;
    for (char *word = strtok(words, " "); word != NULL; word = strtok(NULL, " ")) {
        if (strncmp(word, "ttl=", 4) == 0)
            ttl_ns = read_ns(word + 4);
        else if (strncmp(word, "refresh=", 8) == 0)
            refresh_ns = read_ns(word + 8);
        else
            return false;
    }
    if (timing_schedule(&config->timing, ttl_ns, refresh_ns, &laid_out, &err) < 0)
        (void)fprintf(out, "    refused: %s\n", err.message);
    if (laid_out.ttl_ns == 0)
        return true;
    (void)fputs("   ", out);
    print_instants(out,
                   &(struct election_action){.stop_at_ns = laid_out.stop_at_ns,
                                             .kill_at_ns = laid_out.kill_at_ns,
                                             .deadline_ns = laid_out.deadline_ns},
                   0);
    print_duration(out, "refresh", laid_out.refresh_ns);
    (void)fputc('\n', out);
    (void)timing_explain(&laid_out, config->cool_down_ns, text, sizeof(text));
    for (; *line != '\0'; line += strcspn(line, "\n") + 1)
        (void)fprintf(out, "    | %.*s\n", (int)strcspn(line, "\n"), line);
    return true;
}

/* --- reading and running ---------------------------------------------------------------------- */

struct scenario {
    struct election_config config;
    struct election candidates[CANDIDATES];
    uint32_t restarted[CANDIDATES][ELECTION_MAX_RESTARTS];
    bool made[CANDIDATES];
    int64_t now_ns;
    FILE *out;
};

static bool read_config(struct scenario *scenario, char *words)
{
    for (char *word = strtok(words, " "); word != NULL; word = strtok(NULL, " "))
        if (!read_option(&scenario->config, word))
            return false;
    return true;
}

/* `barred unhealthy` */
static bool read_bar(struct election_event *event, const char *word)
{
    for (int bar = 0; bar < ELECTION_BAR_COUNT; bar++)
        if (strcmp(word, election_bar_name((enum election_bar)bar)) == 0) {
            event->bar = (enum election_bar)bar;
            return true;
        }
    return false;
}

static bool read_detail(struct election_event *event, const char *word)
{
    if (event->type == ELECTION_EVENT_BARRED || event->type == ELECTION_EVENT_ALLOWED)
        return read_bar(event, word);
    const char *value = strchr(word, '=');
    bool grant = event->type == ELECTION_EVENT_GRANTED;
    if (value == NULL) {
        event->unknown.answered |= strcmp(word, "answered") == 0;
        event->denial.amnesia |= strcmp(word, "amnesia") == 0;
        event->denial.hears |= strcmp(word, "hears") == 0;
        event->denial.nobody |= strcmp(word, "nobody") == 0;
        event->child.failed |= strcmp(word, "failed") == 0 || strcmp(word, "unstartable") == 0;
        event->child.unstartable |= strcmp(word, "unstartable") == 0;
        event->child.untold |= strcmp(word, "untold") == 0;
        event->child.killed |= strcmp(word, "killed") == 0;
        event->child.kept |= strcmp(word, "kept") == 0;
        return event->denial.amnesia || event->denial.hears || event->denial.nobody ||
               event->child.failed || event->child.untold || event->child.killed ||
               event->child.kept || event->unknown.answered;
    }
    value++;
    if (strncmp(word, "ttl=", 4) == 0)
        event->grant.ttl_ns = read_ns(value);
    else if (strncmp(word, "refresh=", 8) == 0)
        event->grant.refresh_ns = read_ns(value);
    else if (strncmp(word, "cool_down=", 10) == 0)
        event->grant.cool_down_ns = read_ns(value);
    else if (strncmp(word, "expires=", 8) == 0)
        event->denial.expires_ns = read_ns(value);
    else if (strncmp(word, "retry=", 6) == 0)
        event->denial.retry_ns = event->unknown.retry_ns = read_ns(value);
    else if (strncmp(word, "epoch=", 6) == 0)
        *(grant ? &event->grant.epoch : &event->denial.epoch) = strtoull(value, NULL, 10);
    else if (strncmp(word, "attempt=", 8) == 0)
        event->attempt = (uint32_t)strtoul(value, NULL, 10);
    else
        return false;
    return true;
}

static bool read_type(struct election_event *event, const char *word)
{
    for (int type = 0; type < ELECTION_EVENT_COUNT; type++)
        if (word != NULL &&
            strcmp(word, election_event_name((enum election_event_type)type)) == 0) {
            event->type = (enum election_event_type)type;
            return true;
        }
    return false;
}

static struct election *candidate(struct scenario *scenario, unsigned which)
{
    struct election *election = &scenario->candidates[which];
    if (!scenario->made[which] &&
        election_init(election, &scenario->config, scenario->restarted[which], NULL) < 0)
        return NULL;
    scenario->made[which] = true;
    return election;
}

/* `[a:] [+duration] event [detail …]` */
static bool run_event(struct scenario *scenario, char *words)
{
    struct election_event event = {.denial.expires_ns = -1, .grant.refresh_ns = TIME_NEVER};
    struct election_actions actions;
    char *word = strtok(words, " ");
    unsigned which = 0;
    if (word[0] >= 'a' && word[0] < 'a' + CANDIDATES && word[1] == ':') {
        which = (unsigned)(word[0] - 'a');
        word = strtok(NULL, " ");
    }
    struct election *election = candidate(scenario, which);
    if (election == NULL || word == NULL)
        return false;
    if (word[0] == '+') {
        scenario->now_ns += read_ns(word + 1);
        word = strtok(NULL, " ");
    } else if (strcmp(word, "timer") == 0 && election->armed_ns != TIME_NEVER &&
               election->armed_ns > scenario->now_ns) {
        scenario->now_ns = election->armed_ns;
    }
    if (word != NULL && strcmp(word, "look") == 0) {
        print_look(scenario->out, election, scenario->now_ns);
        return true;
    }
    if (!read_type(&event, word))
        return false;
    event.attempt = election->call.attempt;
    for (word = strtok(NULL, " "); word != NULL; word = strtok(NULL, " "))
        if (!read_detail(&event, word))
            return false;
    event.at_ns = scenario->now_ns;
    election_step(election, &event, &actions);
    for (unsigned i = 0; i < actions.count; i++)
        scenario_print_action(scenario->out, &actions.item[i], scenario->now_ns);
    return true;
}

int scenario_run(FILE *in, FILE *out)
{
    struct scenario scenario = {.config = scenario_config(), .now_ns = 100 * NS_PER_S, .out = out};
    char line[LINE_MAX_SIZE];
    for (int number = 1; fgets(line, sizeof(line), in) != NULL; number++) {
        if (line[0] == ' ')
            continue; /* an earlier run's decision */
        (void)fputs(line, out);
        line[strcspn(line, "\n")] = '\0';
        if (line[0] == '#' || line[0] == '\0')
            continue;
        bool known = strncmp(line, "with ", 5) == 0 ? read_config(&scenario, line + 5)
                     : strncmp(line, "schedule ", 9) == 0
                         ? print_schedule(out, &scenario.config, line + 9)
                         : run_event(&scenario, line);
        if (!known)
            return number;
    }
    return 0;
}
