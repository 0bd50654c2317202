#include "base/figure.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void strip_zeros(char *text)
{
    size_t length = strlen(text);
    while (text[length - 1] == '0')
        text[--length] = '\0';
    if (text[length - 1] == '.')
        text[length - 1] = '\0';
}

struct figure figure_about(double value)
{
    struct figure figure;
    (void)snprintf(figure.text, sizeof(figure.text), "%.3g", value);
    if (strchr(figure.text, 'e') == NULL)
        return figure;
    if (fabs(value) >= 1) {
        (void)snprintf(figure.text, sizeof(figure.text), "%.0f", value);
    } else {
        (void)snprintf(figure.text, sizeof(figure.text), "%.9f", value);
        strip_zeros(figure.text);
    }
    return figure;
}
